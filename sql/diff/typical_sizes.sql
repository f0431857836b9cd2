-- diff/typical_sizes: one row per phase of a step: how large an element of a floating tensor of the
-- benchmark typically is, as the median of the root mean squares.
--
-- What differs by less than a rounding error of a number of this size is noise of a cancellation:
-- 1e-11 between gradients of 1e-3.
--
-- scope:   rank
-- uses:    lib/is_floating
-- reads:   bench_calls     one row per call of the benchmark
--          bench_tensors   one row per tensor of the benchmark
-- params:  none
-- returns: step BIGINT, phase VARCHAR, size DOUBLE
SELECT c.step, c.phase, median(t.norm / sqrt(t.numel)) AS size
FROM bench_tensors AS t
JOIN bench_calls AS c USING (step, seq)
WHERE t.norm > 0 AND isfinite(t.norm) AND t.numel > 0 AND is_floating(t.dtype)
GROUP BY c.step, c.phase
