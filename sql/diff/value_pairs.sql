-- diff/value_pairs: one row per pair of tensors whose elements are on record on both sides, with
-- the files that they lie in; shapes may differ in one dimension, by padding.
--
-- scope:   rank
-- uses:    lib/one_longer
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT, slot VARCHAR, dtype VARCHAR,
--          bench_path VARCHAR, path VARCHAR
SELECT
  p.step,
  p.bench_seq,
  p.target_seq,
  t.slot,
  t.dtype,
  b.value_path AS bench_path,
  t.value_path AS path
FROM call_pairs AS p
JOIN target_tensors AS t ON t.step = p.step AND t.seq = p.target_seq
JOIN bench_tensors AS b ON b.step = p.step AND b.seq = p.bench_seq AND b.key = t.key
WHERE t.value_path IS NOT NULL
  AND b.value_path IS NOT NULL
  AND (t.shape = b.shape OR one_longer(t.shape, b.shape))
  AND t.sharding IS NOT DISTINCT FROM b.sharding
ORDER BY p.step, p.target_seq, p.bench_seq, t.slot
