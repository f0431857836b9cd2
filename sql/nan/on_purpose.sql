-- nan/on_purpose: one row per call that made an infinity the caller asked for, kept one, or turned
-- one into something nobody asked for.
--
--   given    an infinite argument gave the infinity: full(-inf), masked_fill(-inf)
--   kept     every bad value it read was such an infinity, and its result is infinite the same way
--   turned   every bad value it read was such an infinity, and its result holds NaN or the other
--            sign: a softmax over a row that a mask filled with -inf entirely; a fault begins here
--
-- scope:   rank
-- reads:   given       one row per call whose infinity was given as an argument, from nan/given
--          bad_calls   one row per call that reads or makes NaN or an infinity, from nan/bad_calls
--          bad_reads   one row per read of one, with its producer, from nan/bad_reads
--          edges       one row per way of such a value into a later call, from nan/edges
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, manner VARCHAR
WITH RECURSIVE near AS (  -- few ranks have such a call, and the others need not be followed
  SELECT e.*
  FROM edges AS e
  SEMI JOIN given USING (rank)
),
reached AS (
  SELECT step, rank, seq FROM given
  UNION
  SELECT e.step, e.rank, e.seq
  FROM reached AS f
  JOIN near AS e
    ON e.rank = f.rank AND e.producer_step = f.step AND e.producer_seq = f.seq
    AND e.fate = 'carries'
  JOIN bad_calls AS b ON b.step = e.step AND b.rank = e.rank AND b.seq = e.seq
  WHERE NOT b.made_nan
    AND (b.read_posinf OR NOT b.made_posinf)
    AND (b.read_neginf OR NOT b.made_neginf)
),
mixed AS (  -- calls among them that also read a bad value from elsewhere, and what they led to
  SELECT f.step, f.rank, f.seq
  FROM reached AS f
  JOIN bad_reads AS r USING (step, rank, seq)
  LEFT JOIN reached AS p
    ON r.source = 'made' AND p.rank = r.rank AND p.step = r.producer_step
    AND p.seq = r.producer_seq
  WHERE p.seq IS NULL
  UNION
  SELECT f.step, f.rank, f.seq
  FROM mixed AS m
  JOIN near AS e ON e.rank = m.rank AND e.producer_step = m.step AND e.producer_seq = m.seq
  JOIN reached AS f ON f.rank = e.rank AND f.step = e.step AND f.seq = e.seq
),
pure AS (
  SELECT step, rank, seq FROM reached
  EXCEPT
  SELECT step, rank, seq FROM mixed
),
readers AS (  -- calls that read such an infinity
  SELECT DISTINCT r.step, r.rank, r.seq
  FROM pure AS p
  JOIN bad_reads AS r
    ON r.rank = p.rank AND r.producer_step = p.step AND r.producer_seq = p.seq
  WHERE r.source = 'made'
),
pure_readers AS (  -- those that read nothing bad besides
  SELECT s.step, s.rank, s.seq
  FROM readers AS s
  JOIN bad_reads AS r USING (step, rank, seq)
  LEFT JOIN pure AS p
    ON r.source = 'made' AND p.rank = r.rank AND p.step = r.producer_step
    AND p.seq = r.producer_seq
  GROUP BY s.step, s.rank, s.seq
  HAVING bool_and(p.seq IS NOT NULL)
)
SELECT
  p.step,
  p.rank,
  p.seq,
  CASE WHEN g.seq IS NULL THEN 'kept' ELSE 'given' END AS manner
FROM pure AS p
LEFT JOIN given AS g USING (step, rank, seq)
UNION ALL
SELECT b.step, b.rank, b.seq, 'turned'
FROM pure_readers AS r
JOIN bad_calls AS b USING (step, rank, seq)
WHERE b.makes_bad AND b.kind <> 'comm'
  AND (
    b.made_nan
    OR (b.made_posinf AND NOT b.read_posinf)
    OR (b.made_neginf AND NOT b.read_neginf)
  )
