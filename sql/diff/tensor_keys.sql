-- diff/tensor_keys: one row per tensor of one dump, with what a tensor of the paired call is found
-- by, `key`.
--
-- It is the slot; between two frameworks, whose calls take the same tensors in other positions, the
-- place among the tensors that go in or come out. Parameters have their PyTorch name.
--
-- scope:   rank
-- uses:    lib/parameter_key
-- reads:   tensors   one row per tensor of a call
-- params:  $cross BOOLEAN   the dumps are of two frameworks
-- returns: step BIGINT, seq BIGINT, slot VARCHAR, key VARCHAR, direction VARCHAR, role VARCHAR,
--          dtype VARCHAR, shape BIGINT[], numel BIGINT, max DOUBLE, min DOUBLE, mean DOUBLE,
--          norm DOUBLE, has_nan BOOLEAN, has_posinf BOOLEAN, has_neginf BOOLEAN,
--          zero_count BIGINT, checksum VARCHAR, requires_grad BOOLEAN, layout VARCHAR,
--          value_id BIGINT, producer_seq BIGINT, producer_slot VARCHAR, value_path VARCHAR
SELECT
  step,
  seq,
  slot,
  CASE
    WHEN split_part(slot, '.', 1) NOT IN ('input', 'output') THEN parameter_key(slot)
    WHEN NOT $cross THEN slot
    ELSE concat(
      split_part(slot, '.', 1),
      row_number() OVER (
        PARTITION BY step, seq, split_part(slot, '.', 1)
        ORDER BY try_cast(split_part(slot, '.', 2) AS BIGINT) NULLS LAST, length(slot), slot
      )
    )
  END AS key,
  direction,
  role,
  dtype,
  shape,
  numel,
  max,
  min,
  mean,
  norm,
  has_nan,
  has_posinf,
  has_neginf,
  zero_count,
  checksum,
  requires_grad,
  layout,
  value_id,
  producer_seq,
  producer_slot,
  value_path
FROM tensors
WHERE role IS DISTINCT FROM 'echo'
ORDER BY step, seq, slot
