-- diff/crossed_pairs: one row per pair of calls whose inputs agree, each of which its place had
-- given to a call with other inputs, or to none: two calls of one operation that ran in another
-- order.
--
-- Only the values tell; the source line may be the same for both. They must agree far better than
-- two tensors of one kind do by chance, and disagree clearly where they stand. Calls from two known
-- and different places in the source are not the same call, whatever they read.
--
-- scope:   rank
-- uses:    lib/near
-- reads:   sequences      one row per call that is paired by its place, from diff/sequences
--          placed_pairs   one row per pair that places give, from diff/placed_pairs
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT
WITH bench AS (SELECT * FROM sequences WHERE side = 'bench'),
target AS (SELECT * FROM sequences WHERE side = 'target'),
agreeing AS (
  SELECT p.step, p.bench_seq, p.target_seq
  FROM placed_pairs AS p
  JOIN bench AS b ON b.step = p.step AND b.seq = p.bench_seq
  JOIN target AS t ON t.step = p.step AND t.seq = p.target_seq
  WHERE near(b.size, t.size, 1e-2) AND near(b.peak, t.peak, 1e-2)
),
free_bench AS (
  SELECT * FROM bench ANTI JOIN agreeing ON bench.step = agreeing.step AND seq = bench_seq
),
free_target AS (
  SELECT * FROM target ANTI JOIN agreeing ON target.step = agreeing.step AND seq = target_seq
),
candidates AS (
  SELECT b.step, b.seq AS bench_seq, t.seq AS target_seq
  FROM free_bench AS b
  JOIN free_target AS t
    ON t.step = b.step AND t.operation = b.operation AND t.shapes = b.shapes AND t.late = b.late
    AND (t.site = b.site OR t.site = 0 OR b.site = 0)
  WHERE (b.size <> 0 OR b.peak <> 0) AND near(b.size, t.size, 1e-5) AND near(b.peak, t.peak, 1e-5)
)
SELECT step, bench_seq, target_seq
FROM (
  FROM candidates
  QUALIFY row_number() OVER (PARTITION BY step, bench_seq ORDER BY target_seq)
    = row_number() OVER (PARTITION BY step, target_seq ORDER BY bench_seq)
)
QUALIFY row_number() OVER (PARTITION BY step, bench_seq ORDER BY target_seq) = 1
  AND row_number() OVER (PARTITION BY step, target_seq ORDER BY bench_seq) = 1
