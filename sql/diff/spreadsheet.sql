-- diff/spreadsheet: one row per tensor or plain argument of a pair of calls or of a call that only
-- one dump has, as the rows of msprobe's compare_result: inputs, parameters, outputs, gradients.
--
-- scope:   rank
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          unpaired         one row per call that only one dump has, from diff/unpaired
--          bench_calls      one row per call of the benchmark
--          target_calls     one row per call of the target
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
--          target_stacks    one row per call stack of the target
--          real_errors      one row per pair of tensors whose elements are on record
-- params:  none
-- returns: step BIGINT, rank BIGINT, target_seq BIGINT, bench_seq BIGINT, place BIGINT,
--          name VARCHAR, bench_name VARCHAR, dtype VARCHAR, bench_dtype VARCHAR, shape VARCHAR,
--          bench_shape VARCHAR, requires_grad BOOLEAN, bench_requires_grad BOOLEAN, plain BOOLEAN,
--          output BOOLEAN, skipped BOOLEAN, max VARCHAR, min VARCHAR, mean VARCHAR, norm VARCHAR,
--          bench_max VARCHAR, bench_min VARCHAR, bench_mean VARCHAR, bench_norm VARCHAR,
--          checksum VARCHAR, bench_checksum VARCHAR, cosine DOUBLE, euclid DOUBLE, max_abs DOUBLE,
--          max_element_rel DOUBLE, thousandth DOUBLE, five_thousandths DOUBLE, value_path VARCHAR,
--          bench_value_path VARCHAR, stack VARCHAR
WITH calls AS (
  SELECT step, rank, target_seq, bench_seq, coalesce(target_seq, bench_seq) AS at
  FROM call_pairs
  WHERE how <> 'recompute'
  UNION ALL
  SELECT
    step,
    rank,
    CASE side WHEN 'target' THEN seq END,
    CASE side WHEN 'bench' THEN seq END,
    seq
  FROM unpaired
),
numbers AS (
  SELECT 'target' AS side, t.step, t.seq, t.slot, t.dtype, t.shape, t.requires_grad, t.checksum,
    t.value_path, t.direction,
    CASE WHEN has_nan THEN 'nan' WHEN has_posinf THEN 'inf' ELSE t.max::VARCHAR END AS max,
    CASE WHEN has_nan THEN 'nan' WHEN has_neginf THEN '-inf' ELSE t.min::VARCHAR END AS min,
    t.mean::VARCHAR AS mean, t.norm::VARCHAR AS norm, false AS plain
  FROM target_tensors AS t
  UNION ALL
  SELECT 'bench', b.step, b.seq, b.slot, b.dtype, b.shape, b.requires_grad, b.checksum,
    b.value_path, b.direction,
    CASE WHEN has_nan THEN 'nan' WHEN has_posinf THEN 'inf' ELSE b.max::VARCHAR END,
    CASE WHEN has_nan THEN 'nan' WHEN has_neginf THEN '-inf' ELSE b.min::VARCHAR END,
    b.mean::VARCHAR, b.norm::VARCHAR, false
  FROM bench_tensors AS b
  UNION ALL
  SELECT c.side, c.step, c.seq, j.key, concat('<class ''', j.value ->> '$.type', '''>'),
    []::BIGINT[], NULL, NULL, NULL, 'input', j.value ->> '$.value', j.value ->> '$.value',
    j.value ->> '$.value', j.value ->> '$.value', true
  FROM (
    SELECT 'target' AS side, step, seq, args FROM target_calls
    UNION ALL
    SELECT 'bench', step, seq, args FROM bench_calls
  ) AS c, json_each(c.args) AS j
  WHERE j.value ->> '$.type' IN ('int', 'float', 'bool', 'str')
),
target_rows AS (
  SELECT c.*, n.* EXCLUDE (side, step, seq)
  FROM calls AS c
  JOIN numbers AS n ON n.side = 'target' AND n.step = c.step AND n.seq = c.target_seq
),
bench_rows AS (
  SELECT c.*, n.* EXCLUDE (side, step, seq)
  FROM calls AS c
  JOIN numbers AS n ON n.side = 'bench' AND n.step = c.step AND n.seq = c.bench_seq
),
joined AS (
  SELECT
    coalesce(t.step, b.step) AS step,
    coalesce(t.rank, b.rank) AS rank,
    coalesce(t.target_seq, b.target_seq) AS target_seq,
    coalesce(t.bench_seq, b.bench_seq) AS bench_seq,
    coalesce(t.at, b.at) AS at,
    coalesce(t.slot, b.slot) AS slot,
    t.slot AS target_slot,
    b.slot AS bench_slot,
    coalesce(t.direction, b.direction) AS direction,
    coalesce(t.plain, b.plain) AS plain,
    t.dtype, b.dtype AS bench_dtype, t.shape, b.shape AS bench_shape,
    t.requires_grad, b.requires_grad AS bench_requires_grad,
    t.max, t.min, t.mean, t.norm,
    b.max AS bench_max, b.min AS bench_min, b.mean AS bench_mean, b.norm AS bench_norm,
    t.checksum, b.checksum AS bench_checksum, t.value_path, b.value_path AS bench_value_path
  FROM target_rows AS t
  FULL JOIN bench_rows AS b
    ON b.step = t.step AND b.target_seq = t.target_seq AND b.bench_seq = t.bench_seq
    AND b.slot = t.slot
)
SELECT
  j.step,
  j.rank,
  j.target_seq,
  j.bench_seq,
  row_number() OVER (
    PARTITION BY j.step, j.target_seq, j.bench_seq
    ORDER BY
      list_position(['input', 'parameters', 'output', 'gradient'], split_part(j.slot, '.', 1)),
      try_cast(split_part(j.slot, '.', 2) AS BIGINT) NULLS LAST,
      length(j.slot),
      j.slot
  ) - 1 AS place,
  t.name || '.' || replace(j.target_slot, 'gradient.', '') AS name,
  b.name || '.' || replace(j.bench_slot, 'gradient.', '') AS bench_name,
  j.dtype,
  j.bench_dtype,
  j.shape::VARCHAR AS shape,
  j.bench_shape::VARCHAR AS bench_shape,
  j.requires_grad,
  j.bench_requires_grad,
  j.plain,
  j.direction = 'output' AS output,
  list_contains(
    [
      'empty', 'empty_like', 'numpy', 'to', '__setitem__', 'empty_with_format', 'new_empty_strided',
      'new_empty', 'empty_strided'
    ],
    coalesce(t.api, b.api)
  ) AS skipped,
  j.max,
  j.min,
  j.mean,
  j.norm,
  j.bench_max,
  j.bench_min,
  j.bench_mean,
  j.bench_norm,
  j.checksum,
  j.bench_checksum,
  -- msprobe calls two zeros alike
  CASE WHEN r.cosine IS NULL AND r.scale = 0 THEN 1 ELSE r.cosine END AS cosine,
  r.euclid,
  r.max_abs,
  r.max_element_rel,
  r.thousandth,
  r.five_thousandths,
  j.value_path,
  j.bench_value_path,
  s.stack
FROM joined AS j
LEFT JOIN target_calls AS t ON t.step = j.step AND t.seq = j.target_seq
LEFT JOIN bench_calls AS b ON b.step = j.step AND b.seq = j.bench_seq
LEFT JOIN target_stacks AS s ON s.stack_id = t.stack_id
LEFT JOIN real_errors AS r
  ON r.step = j.step AND r.target_seq = j.target_seq AND r.bench_seq = j.bench_seq
  AND r.slot = j.target_slot
ORDER BY j.step, j.rank, j.at, j.target_seq, j.bench_seq, place
