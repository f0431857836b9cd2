-- diff/merged_parts: one row per tensor that one dump holds as a whole and the other in shards:
-- what the shards are together, held against the whole.
--
-- Maximum and minimum are those of the shards, the mean goes by their sizes, and the norm is the
-- root of the sum of squares. Shards that do not add up to the size of the whole (replicas, a rank
-- that is missing) are not comparable: `comparable` is false.
--
-- scope:   run
-- uses:    lib/epsilon, lib/tolerance
-- reads:   parts   one row per pair of tensors of which one is a shard, from diff/parts
-- params:  none
-- returns: step BIGINT, rank BIGINT, bench_rank BIGINT, seq BIGINT, bench_seq BIGINT, name VARCHAR,
--          bench_name VARCHAR, api VARCHAR, phase VARCHAR, kind VARCHAR, module VARCHAR,
--          slot VARCHAR, bench_slot VARCHAR, is_input BOOLEAN, dtype VARCHAR, bench_dtype VARCHAR,
--          shards BIGINT, comparable BOOLEAN, max DOUBLE, min DOUBLE, mean DOUBLE, norm DOUBLE,
--          max_error DOUBLE, max_rel DOUBLE, tolerance DOUBLE, ratio DOUBLE
WITH sided AS (  -- the whole tensor first
  SELECT
    *,
    bench_numel > numel AS bench_whole,
    CASE WHEN bench_numel > numel
      THEN {'numel': bench_numel, 'max': bench_max, 'min': bench_min, 'mean': bench_mean,
        'norm': bench_norm}
      ELSE {'numel': numel, 'max': max, 'min': min, 'mean': mean, 'norm': norm}
    END AS whole,
    CASE WHEN bench_numel > numel
      THEN {'numel': numel, 'max': max, 'min': min, 'mean': mean, 'norm': norm}
      ELSE {'numel': bench_numel, 'max': bench_max, 'min': bench_min, 'mean': bench_mean,
        'norm': bench_norm}
    END AS part
  FROM parts
),
merged AS (
  SELECT
    step,
    bench_whole,
    CASE WHEN bench_whole THEN bench_rank ELSE rank END AS whole_rank,
    CASE WHEN bench_whole THEN bench_seq ELSE seq END AS whole_seq,
    CASE WHEN bench_whole THEN bench_slot ELSE slot END AS whole_slot,
    min(rank) AS rank,
    min(bench_rank) AS bench_rank,
    arg_min(seq, (rank, bench_rank)) AS seq,
    arg_min(bench_seq, (rank, bench_rank)) AS bench_seq,
    arg_min(name, (rank, bench_rank)) AS name,
    arg_min(bench_name, (rank, bench_rank)) AS bench_name,
    any_value(api) AS api,
    any_value(phase) AS phase,
    any_value(kind) AS kind,
    any_value(module) AS module,
    min(slot) AS slot,
    min(bench_slot) AS bench_slot,
    bool_or(is_input) AS is_input,
    any_value(dtype) AS dtype,
    any_value(bench_dtype) AS bench_dtype,
    count(*) AS shards,
    any_value(whole) AS whole,
    sum(part.numel) AS numel,
    max(part.max) AS max,
    min(part.min) AS min,
    sum(part.mean * part.numel) / sum(part.numel) AS mean,
    sqrt(sum(part.norm * part.norm)) AS norm
  FROM sided
  GROUP BY step, bench_whole, whole_rank, whole_seq, whole_slot
),
measured AS (
  SELECT
    *,
    greatest(abs(max - whole.max), abs(min - whole.min)) AS max_error,
    greatest(abs(max), abs(min), abs(whole.max), abs(whole.min)) AS scale,
    greatest(tolerance(dtype), tolerance(bench_dtype)) AS tolerance
  FROM merged
)
SELECT
  step,
  rank,
  bench_rank,
  seq,
  bench_seq,
  name,
  bench_name,
  api,
  phase,
  kind,
  module,
  slot,
  bench_slot,
  is_input,
  dtype,
  bench_dtype,
  shards,
  numel = whole.numel AND max_error IS NOT NULL AS comparable,
  max,
  min,
  mean,
  norm,
  max_error,
  CASE WHEN scale > 0 THEN max_error / scale END AS max_rel,
  tolerance,
  greatest(
    CASE WHEN max_error > 0 THEN max_error / (tolerance * scale) ELSE 0 END,
    CASE WHEN norm <> whole.norm
      THEN abs(norm - whole.norm) / (0.5 * tolerance * greatest(norm, whole.norm)) ELSE 0 END,
    CASE WHEN mean <> whole.mean AND norm > 0
      THEN abs(mean - whole.mean) / (tolerance * norm / sqrt(numel)) ELSE 0 END
  ) AS ratio
FROM measured
ORDER BY step, rank, bench_rank, seq, bench_seq, slot
