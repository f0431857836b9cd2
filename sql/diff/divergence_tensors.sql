-- diff/divergence_tensors: one row per tensor of the first calls at which a difference begins, with
-- the numbers of both sides.
--
-- scope:   rank
-- reads:   findings         one row per pair of calls with something to say, from diff/findings
--          tensor_pairs     one row per pair of tensors, from diff/tensor_pairs
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, slot VARCHAR, kind VARCHAR, ratio DOUBLE,
--          bench_dtype VARCHAR, dtype VARCHAR, bench_shape BIGINT[], shape BIGINT[],
--          bench_max DOUBLE, max DOUBLE, bench_min DOUBLE, min DOUBLE, bench_mean DOUBLE,
--          mean DOUBLE, bench_norm DOUBLE, norm DOUBLE
WITH first AS (
  FROM findings
  WHERE status NOT IN ('drift', 'padding', 'requires_grad', 'recompute')
  QUALIFY row_number() OVER (PARTITION BY step, status = 'propagated' ORDER BY seq) <= 3
)
SELECT
  f.step,
  f.rank,
  f.seq,
  x.slot,
  x.kind,
  x.ratio,
  b.dtype AS bench_dtype,
  t.dtype,
  b.shape AS bench_shape,
  t.shape,
  b.max AS bench_max,
  t.max,
  b.min AS bench_min,
  t.min,
  b.mean AS bench_mean,
  t.mean,
  b.norm AS bench_norm,
  t.norm
FROM first AS f
JOIN tensor_pairs AS x
  ON x.step = f.step AND x.target_seq = f.seq AND x.bench_seq = f.bench_seq
JOIN target_tensors AS t ON t.step = x.step AND t.seq = x.target_seq AND t.slot = x.slot
JOIN bench_tensors AS b ON b.step = x.step AND b.seq = x.bench_seq AND b.slot = x.bench_slot
ORDER BY f.step, f.rank, f.seq, NOT x.is_input, length(x.slot), x.slot
