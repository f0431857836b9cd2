-- nan/edges: one row per way that a NaN or an infinity took from the call that made it into a later
-- call.
--
-- `fate`: carries (the reader's result is bad too), absorbs (its results are finite), sends (it is
-- a communication call: the value goes on in its result, also on other ranks). A call that only
-- looks at values gives no row. Where modules alone are on record, what is inside a module is
-- unknown: the module is taken to read what its children made.
--
-- scope:   rank
-- uses:    lib/is_floating
-- reads:   calls          one row per call
--          tensors        one row per tensor of a call
--          bad_tensors    one row per tensor read or made that holds one, from nan/bad_tensors
--          bad_calls      one row per call that reads or makes NaN or an infinity, from
--                         nan/bad_calls
--          bad_reads      one row per read of one, with its producer, from nan/bad_reads
-- params:  none
-- returns: rank BIGINT, producer_step BIGINT, producer_seq BIGINT, producer_likeness UBIGINT,
--          step BIGINT, seq BIGINT, fate VARCHAR
WITH inside AS (
  SELECT t.step, t.rank, t.seq, t.likeness, c.parent_seq
  FROM bad_tensors AS t
  JOIN calls AS c USING (step, rank, seq)
  WHERE t.kind = 'module' AND NOT t.is_read AND c.parent_seq IS NOT NULL
),
finite_outside AS (
  SELECT t.step, t.rank, t.seq
  FROM tensors AS t
  JOIN (SELECT DISTINCT step, rank, parent_seq FROM inside) AS i
    ON i.step = t.step AND i.rank = t.rank AND i.parent_seq = t.seq
  WHERE t.direction = 'output' AND is_floating(t.dtype) AND t.numel > 0
  GROUP BY t.step, t.rank, t.seq
  HAVING bool_and(
    coalesce(NOT t.has_nan, false) AND NOT coalesce(t.has_posinf OR t.has_neginf, false)
  )
)
SELECT DISTINCT
  r.rank,
  r.producer_step,
  r.producer_seq,
  r.producer_likeness,
  r.step,
  r.seq,
  CASE WHEN b.kind = 'comm' THEN 'sends' WHEN b.makes_bad THEN 'carries' ELSE 'absorbs' END AS fate
FROM bad_reads AS r
JOIN bad_calls AS b USING (step, rank, seq)
WHERE r.source = 'made' AND (b.makes_bad OR b.absorbs OR b.kind = 'comm')
UNION ALL
SELECT DISTINCT
  i.rank,
  i.step,
  i.seq,
  i.likeness,
  i.step,
  i.parent_seq,
  CASE WHEN f.seq IS NULL THEN 'carries' ELSE 'absorbs' END
FROM inside AS i
LEFT JOIN bad_calls AS b ON b.step = i.step AND b.rank = i.rank AND b.seq = i.parent_seq
LEFT JOIN finite_outside AS f ON f.step = i.step AND f.rank = i.rank AND f.seq = i.parent_seq
WHERE b.makes_bad OR f.seq IS NOT NULL
