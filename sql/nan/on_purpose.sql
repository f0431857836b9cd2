-- nan/on_purpose: one row per call that made an infinity the caller asked for, kept one, or turned
-- one into something nobody asked for.
--
--   given    an infinite argument gave the infinity: full(-inf), masked_fill(-inf)
--   kept     every bad value it read was such an infinity, and its result is infinite the same way
--   turned   every bad value it read was such an infinity, and its result holds NaN or the other
--            sign: a softmax over a row that a mask filled with -inf entirely; a fault begins here
--
-- scope:   rank
-- uses:    lib/nonfinite_argument
-- reads:   call_facts   one row per call, from schema/call_facts
--          bad_calls    one row per call that reads or makes NaN or an infinity, from nan/bad_calls
--          bad_reads    one row per read of one, with its producer, from nan/bad_reads
--          edges        one row per way of such a value into a later call, from nan/edges
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, manner VARCHAR
WITH RECURSIVE given AS (
  SELECT b.step, b.rank, b.seq
  FROM bad_calls AS b
  JOIN call_facts AS c USING (step, rank, seq)
  WHERE b.makes_bad AND NOT b.reads_bad AND NOT b.made_nan AND nonfinite_argument(c.args)
),
reached AS (
  SELECT step, rank, seq FROM given
  UNION
  SELECT e.step, e.rank, e.seq
  FROM reached AS f
  JOIN edges AS e
    ON e.rank = f.rank AND e.producer_step = f.step AND e.producer_seq = f.seq
    AND e.fate = 'carries'
  JOIN bad_calls AS b ON b.step = e.step AND b.rank = e.rank AND b.seq = e.seq
  WHERE NOT b.made_nan
    AND (b.read_posinf OR NOT b.made_posinf)
    AND (b.read_neginf OR NOT b.made_neginf)
),
foreign_reads AS (  -- calls that also read a bad value from elsewhere
  SELECT DISTINCT r.step, r.rank, r.seq
  FROM bad_reads AS r
  LEFT JOIN reached AS f
    ON f.rank = r.rank AND f.step = r.producer_step AND f.seq = r.producer_seq
  WHERE f.seq IS NULL OR r.source <> 'made'
),
pure AS (
  SELECT f.step, f.rank, f.seq
  FROM reached AS f
  ANTI JOIN foreign_reads AS r USING (step, rank, seq)
)
SELECT
  p.step,
  p.rank,
  p.seq,
  CASE WHEN g.seq IS NULL THEN 'kept' ELSE 'given' END AS manner
FROM pure AS p
LEFT JOIN given AS g USING (step, rank, seq)
UNION ALL
SELECT DISTINCT b.step, b.rank, b.seq, 'turned'
FROM bad_calls AS b
JOIN edges AS e USING (step, rank, seq)
JOIN pure AS p ON p.rank = e.rank AND p.step = e.producer_step AND p.seq = e.producer_seq
ANTI JOIN foreign_reads AS r ON r.step = b.step AND r.rank = b.rank AND r.seq = b.seq
WHERE b.makes_bad AND b.kind <> 'comm'
  AND (
    b.made_nan
    OR (b.made_posinf AND NOT b.read_posinf)
    OR (b.made_neginf AND NOT b.read_neginf)
  )
