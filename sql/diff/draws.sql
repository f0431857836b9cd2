-- diff/draws: one row per pair of calls of a random operation whose inputs agree and whose results
-- do not: whether both results may be draws from one distribution.
--
-- Elements are not compared. Held against each other are the share of zeros, the mean, and the mean
-- of the squares, each against 5 standard deviations of the difference of two independent samples:
-- sqrt(2 p (1 - p) / n) for a share, rms sqrt(2 / n) for the mean, and at most peak rms sqrt(2 / n)
-- for the squares, as the variance of x^2 is no more than peak^2 times the mean of x^2. A dropout
-- of whole channels draws once for each. NULL where the numbers do not tell.
--
-- scope:   rank
-- uses:    lib/operation_key, lib/is_random
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          call_states      one row per pair of calls, from diff/call_states
--          tensor_pairs     one row per pair of tensors, from diff/tensor_pairs
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT, alike BOOLEAN
WITH other_results AS (
  SELECT p.step, p.bench_seq, p.target_seq, operation_key(p.api) AS operation
  FROM call_states AS s
  JOIN call_pairs AS p USING (step, bench_seq, target_seq)
  WHERE s.in_kind IS NULL AND s.out_kind IS NOT NULL
),
random_calls AS (
  SELECT * FROM other_results WHERE is_random(operation)
),
results AS (
  SELECT
    c.step,
    c.bench_seq,
    c.target_seq,
    CASE
      WHEN regexp_matches(c.operation, 'feature.*dropout|dropout[123]') THEN t.shape[1] * t.shape[2]
      -- its windows overlap: what it draws is far less than what it gives
      WHEN NOT contains(c.operation, 'pool') THEN t.numel
    END AS draws,
    (t.zero_count + b.zero_count) / (t.numel + b.numel) AS zeros,
    abs(t.zero_count / t.numel - b.zero_count / b.numel) AS zeros_apart,
    abs(t.mean - b.mean) AS means_apart,
    abs(t.norm * t.norm / t.numel - b.norm * b.norm / b.numel) AS squares_apart,
    sqrt((t.norm * t.norm + b.norm * b.norm) / (t.numel + b.numel)) AS rms,
    greatest(abs(t.max), abs(t.min), abs(b.max), abs(b.min)) AS peak
  FROM random_calls AS c
  JOIN tensor_pairs AS x USING (step, bench_seq, target_seq)
  JOIN target_tensors AS t ON t.step = x.step AND t.seq = x.target_seq AND t.slot = x.slot
  JOIN bench_tensors AS b ON b.step = x.step AND b.seq = x.bench_seq AND b.slot = x.bench_slot
  WHERE x.kind = 'value' AND NOT x.is_input AND t.numel > 0
)
SELECT
  c.step,
  c.bench_seq,
  c.target_seq,
  bool_and(
    coalesce(zeros_apart <= 5 * sqrt(2 * zeros * (1 - zeros) / draws), true)
    AND coalesce(means_apart <= 5 * rms * sqrt(2 / draws), true)
    AND coalesce(squares_apart <= 5 * peak * rms * sqrt(2 / draws), true)
  ) FILTER (WHERE r.step IS NOT NULL) AS alike
FROM random_calls AS c
LEFT JOIN results AS r USING (step, bench_seq, target_seq)
GROUP BY c.step, c.bench_seq, c.target_seq
