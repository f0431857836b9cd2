-- diff/parts: one row per pair of tensors that ranks hold different parts of: a shard against the
-- whole, or shards of two layouts. What all parts together are is known when those of the other
-- ranks are there.
--
-- By DTensor's placements where they are on record; elsewhere, in dumps of different numbers of
-- ranks, by a shape that differs in one dimension. `shards` and `bench_shards`: into how many parts
-- each side cuts the tensor. `nonfinite` and `bench_nonfinite`: 1 for NaN, 2 for inf, 4 for -inf.
--
-- scope:   rank
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          tensor_pairs     one row per pair of tensors, from diff/tensor_pairs
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
-- params:  none
-- returns: step BIGINT, rank BIGINT, bench_rank BIGINT, seq BIGINT, bench_seq BIGINT, name VARCHAR,
--          bench_name VARCHAR, api VARCHAR, phase VARCHAR, kind VARCHAR, module VARCHAR,
--          slot VARCHAR, bench_slot VARCHAR, is_input BOOLEAN, weight BOOLEAN, dtype VARCHAR,
--          bench_dtype VARCHAR, sharding VARCHAR, bench_sharding VARCHAR, shards BIGINT,
--          bench_shards BIGINT, size BIGINT, numel BIGINT, max DOUBLE, min DOUBLE, mean DOUBLE,
--          norm DOUBLE, nonfinite INTEGER, bench_numel BIGINT, bench_max DOUBLE, bench_min DOUBLE,
--          bench_mean DOUBLE, bench_norm DOUBLE, bench_nonfinite INTEGER
WITH sized AS (
  SELECT
    x.step,
    x.target_seq,
    x.bench_seq,
    x.weight,
    t.slot,
    b.slot AS bench_slot,
    t.direction <> 'output' AS is_input,
    t.dtype,
    b.dtype AS bench_dtype,
    t.sharding,
    b.sharding AS bench_sharding,
    t.shards,
    b.shards AS bench_shards,
    greatest(list_aggregate(t.shape, 'product'), list_aggregate(b.shape, 'product'))::BIGINT
      AS size,
    t.numel,
    t.max,
    t.min,
    t.mean,
    t.norm,
    t.has_nan::INTEGER + 2 * t.has_posinf::INTEGER + 4 * t.has_neginf::INTEGER AS nonfinite,
    b.numel AS bench_numel,
    b.max AS bench_max,
    b.min AS bench_min,
    b.mean AS bench_mean,
    b.norm AS bench_norm,
    b.has_nan::INTEGER + 2 * b.has_posinf::INTEGER + 4 * b.has_neginf::INTEGER
      AS bench_nonfinite
  FROM tensor_pairs AS x
  JOIN target_tensors AS t
    ON t.step = x.step AND t.seq = x.target_seq AND t.slot = x.slot
  JOIN bench_tensors AS b
    ON b.step = x.step AND b.seq = x.bench_seq AND b.slot = x.bench_slot
  WHERE x.part
)
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
  s.slot,
  s.bench_slot,
  s.is_input,
  s.weight,
  s.dtype,
  s.bench_dtype,
  s.sharding,
  s.bench_sharding,
  coalesce(s.shards, s.size // nullif(s.numel, 0)) AS shards,
  coalesce(s.bench_shards, s.size // nullif(s.bench_numel, 0)) AS bench_shards,
  s.size,
  s.numel,
  s.max,
  s.min,
  s.mean,
  s.norm,
  s.nonfinite,
  s.bench_numel,
  s.bench_max,
  s.bench_min,
  s.bench_mean,
  s.bench_norm,
  s.bench_nonfinite
FROM sized AS s
JOIN call_pairs AS p USING (step, target_seq, bench_seq)
ORDER BY p.step, p.rank, p.bench_rank, p.target_seq, p.bench_seq, s.slot
