-- diff/placed_pairs: one row per pair of calls that a user names or that their places give: by
-- position in even parts, by alignment in the others.
--
-- scope:   rank
-- reads:   sequences     one row per call that is paired by its place, from diff/sequences
--          aligned       one row per pair of calls that an alignment of uneven parts gave
--          renamed       one row per name that stands for another one in the other dump
--          bench_calls   one row per call of the benchmark
--          target_calls  one row per call of the target
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT
WITH named AS (
  SELECT b.step, b.seq AS bench_seq, t.seq AS target_seq
  FROM renamed AS r
  JOIN bench_calls AS b ON b.name = r.ours
  JOIN target_calls AS t ON t.name = r.theirs AND t.step = b.step
  WHERE r.kind = 'call'
),
placed AS (
  SELECT b.step, b.seq AS bench_seq, t.seq AS target_seq
  FROM sequences AS b
  JOIN sequences AS t USING (step, part, position)
  WHERE b.even AND b.side = 'bench' AND t.side = 'target'
  UNION ALL
  SELECT step, bench_seq, target_seq
  FROM aligned
)
SELECT step, bench_seq, target_seq
FROM named
UNION ALL
SELECT step, bench_seq, target_seq
FROM placed
ANTI JOIN named AS n USING (step, bench_seq)
ANTI JOIN named AS m USING (step, target_seq)
