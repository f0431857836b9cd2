-- schema/tensor_facts: one row per tensor of a recorded call: what it holds and where it came from.
--
-- Read once for all questions of a worker.
--
-- scope:   rank
-- reads:   tensors   one row per tensor of a call
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, slot VARCHAR, direction VARCHAR, role VARCHAR,
--          dtype VARCHAR, shape BIGINT[], numel BIGINT, max DOUBLE, min DOUBLE, has_nan BOOLEAN,
--          has_posinf BOOLEAN, has_neginf BOOLEAN, saturated BOOLEAN, requires_grad BOOLEAN,
--          value_id BIGINT, producer_seq BIGINT, producer_slot VARCHAR
SELECT
  step,
  rank,
  seq,
  slot,
  direction,
  role,
  dtype,
  shape,
  numel,
  max,
  min,
  has_nan,
  has_posinf,
  has_neginf,
  saturated,
  requires_grad,
  value_id,
  producer_seq,
  producer_slot
FROM tensors
