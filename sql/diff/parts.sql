-- diff/parts: one row per pair of tensors of which one is a shard of the other, in dumps of
-- different numbers of ranks: what all shards together are is known when those of the other ranks
-- are there.
--
-- scope:   rank
-- uses:    lib/is_part
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
-- params:  $split BOOLEAN   the dumps have different numbers of ranks
-- returns: step BIGINT, rank BIGINT, bench_rank BIGINT, seq BIGINT, bench_seq BIGINT, name VARCHAR,
--          bench_name VARCHAR, api VARCHAR, phase VARCHAR, kind VARCHAR, module VARCHAR,
--          slot VARCHAR, bench_slot VARCHAR, is_input BOOLEAN, dtype VARCHAR, bench_dtype VARCHAR,
--          numel BIGINT, max DOUBLE, min DOUBLE, mean DOUBLE, norm DOUBLE, bench_numel BIGINT,
--          bench_max DOUBLE, bench_min DOUBLE, bench_mean DOUBLE, bench_norm DOUBLE
SELECT
  p.step,
  p.rank,
  p.bench_rank,
  p.target_seq AS seq,
  p.bench_seq,
  p.name,
  p.bench_name,
  p.api,
  p.phase,
  p.kind,
  p.module,
  t.slot,
  b.slot AS bench_slot,
  t.direction <> 'output' AS is_input,
  t.dtype,
  b.dtype AS bench_dtype,
  t.numel,
  t.max,
  t.min,
  t.mean,
  t.norm,
  b.numel AS bench_numel,
  b.max AS bench_max,
  b.min AS bench_min,
  b.mean AS bench_mean,
  b.norm AS bench_norm
FROM call_pairs AS p
JOIN target_tensors AS t ON t.step = p.step AND t.seq = p.target_seq
JOIN bench_tensors AS b ON b.step = p.step AND b.seq = p.bench_seq AND b.key = t.key
WHERE $split AND t.shape <> b.shape AND is_part(t.shape, b.shape)
ORDER BY p.step, p.rank, p.bench_rank, p.target_seq, p.bench_seq, t.slot
