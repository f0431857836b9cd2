-- diff/noise_errors: one row per tensor of the benchmark that a further run of the same code also
-- has: how far the two are apart.
--
-- scope:   rank
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the further run
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, slot VARCHAR, max_error DOUBLE, mean_error DOUBLE,
--          norm_error DOUBLE
SELECT
  p.step,
  p.bench_seq,
  b.slot,
  max(greatest(abs(t.max - b.max), abs(t.min - b.min))) AS max_error,
  max(abs(t.mean - b.mean)) AS mean_error,
  max(abs(t.norm - b.norm)) AS norm_error
FROM call_pairs AS p
JOIN target_tensors AS t ON t.step = p.step AND t.seq = p.target_seq
JOIN bench_tensors AS b ON b.step = p.step AND b.seq = p.bench_seq AND b.key = t.key
WHERE t.max IS NOT NULL AND b.max IS NOT NULL AND t.shape = b.shape
GROUP BY p.step, p.bench_seq, b.slot
ORDER BY p.step, p.bench_seq, b.slot
