-- diff/sources: one row per pair of calls that reads, as its first wrong input, what a call made
-- that only one dump has: the call of the target, and the one that stands in its place in the
-- benchmark.
--
-- By lineage, or by the numbers: the latest such call before it whose output has all of them.
--
-- scope:   rank
-- reads:   differing        one row per pair of calls with something wrong, from diff/differing
--          unpaired         one row per call that only one dump has, from diff/unpaired
--          call_pairs       one row per pair of calls, from diff/call_pairs
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT, target_name VARCHAR,
--          bench_name VARCHAR
WITH inputs AS (
  SELECT 'target' AS side, d.step, d.bench_seq, d.target_seq, d.target_seq AS seq, t.*
    EXCLUDE (step, seq)
  FROM differing AS d
  JOIN target_tensors AS t ON t.step = d.step AND t.seq = d.target_seq AND t.slot = d.slot
  WHERE NOT d.explained AND NOT d.drift
  UNION ALL
  SELECT 'bench', d.step, d.bench_seq, d.target_seq, d.bench_seq, b.* EXCLUDE (step, seq)
  FROM differing AS d
  JOIN target_tensors AS t ON t.step = d.step AND t.seq = d.target_seq AND t.slot = d.slot
  JOIN bench_tensors AS b ON b.step = d.step AND b.seq = d.bench_seq AND b.key = t.key
  WHERE NOT d.explained AND NOT d.drift
),
outputs AS (
  SELECT u.side, u.name, t.*
  FROM unpaired AS u
  JOIN (
    SELECT 'target' AS side, * FROM target_tensors
    UNION ALL
    SELECT 'bench', * FROM bench_tensors
  ) AS t ON t.side = u.side AND t.step = u.step AND t.seq = u.seq
  WHERE t.direction = 'output'
),
made AS (
  SELECT i.side, i.step, i.bench_seq, i.target_seq, arg_max(o.name, o.seq) AS name
  FROM inputs AS i
  JOIN outputs AS o
    ON o.side = i.side AND o.step = i.step AND o.seq < i.seq AND o.numel = i.numel
    AND CASE
      WHEN i.producer_seq IS NOT NULL THEN o.seq = i.producer_seq
      ELSE o.dtype = i.dtype
        AND (o.max, o.min, o.mean, o.norm, o.checksum)
          IS NOT DISTINCT FROM (i.max, i.min, i.mean, i.norm, i.checksum)
    END
  GROUP BY i.side, i.step, i.bench_seq, i.target_seq
)
SELECT
  step,
  bench_seq,
  target_seq,
  any_value(name) FILTER (WHERE side = 'target') AS target_name,
  any_value(name) FILTER (WHERE side = 'bench') AS bench_name
FROM made
GROUP BY step, bench_seq, target_seq
