-- nan/ways: one row per way by which a NaN or an infinity lives on: from the call that made it into
-- a later call whose result is bad too.
--
-- A way into a call that turned an infinity, asked for by the caller, into something nobody asked
-- for is no such way: there a fault begins, and the infinity before it is none. Nor is a way of
-- such an infinity into a call that reads something bad besides: that made the result bad.
--
-- scope:   rank
-- reads:   edges        one row per way of a NaN or infinity into a later call, from nan/edges
--          bad_reads    one row per read of one, with its producer, from nan/bad_reads
--          on_purpose   one row per call with an infinity that was asked for, from nan/on_purpose
-- params:  none
-- returns: rank BIGINT, producer_step BIGINT, producer_seq BIGINT, step BIGINT, seq BIGINT
WITH asked AS (
  SELECT step, rank, seq FROM on_purpose WHERE manner <> 'turned'
),
readers AS (
  SELECT DISTINCT r.step, r.rank, r.seq
  FROM asked AS a
  JOIN bad_reads AS r
    ON r.source = 'made' AND r.rank = a.rank AND r.producer_step = a.step AND r.producer_seq = a.seq
),
read_besides AS (
  SELECT DISTINCT r.step, r.rank, r.seq
  FROM readers
  JOIN bad_reads AS r USING (step, rank, seq)
  LEFT JOIN asked AS a
    ON r.source = 'made' AND a.rank = r.rank AND a.step = r.producer_step AND a.seq = r.producer_seq
  WHERE a.seq IS NULL
)
SELECT DISTINCT e.rank, e.producer_step, e.producer_seq, e.step, e.seq
FROM edges AS e
ANTI JOIN (SELECT * FROM on_purpose WHERE manner = 'turned') AS p USING (step, rank, seq)
LEFT JOIN asked AS a
  ON a.rank = e.rank AND a.step = e.producer_step AND a.seq = e.producer_seq
LEFT JOIN read_besides AS b ON b.step = e.step AND b.rank = e.rank AND b.seq = e.seq
WHERE e.fate = 'carries' AND (a.seq IS NULL OR b.seq IS NULL)
