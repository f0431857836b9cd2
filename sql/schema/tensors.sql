-- schema/tensors: one row per tensor of a recorded call, of any schema version, in the types of the
-- newest.
--
-- Statistics are over the finite elements; has_nan, has_posinf and has_neginf say what else is in
-- the tensor. NULL is "not recorded".
--
-- scope:   rank
-- reads:   tensor_files   the rows of all tensors-*.parquet, with step and rank from the path
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, slot VARCHAR, direction VARCHAR, role VARCHAR,
--          dtype VARCHAR, shape BIGINT[], numel BIGINT, max DOUBLE, min DOUBLE, mean DOUBLE,
--          norm DOUBLE, has_nan BOOLEAN, has_posinf BOOLEAN, has_neginf BOOLEAN, nan_count BIGINT,
--          posinf_count BIGINT, neginf_count BIGINT, zero_count BIGINT, saturated BOOLEAN,
--          checksum VARCHAR, requires_grad BOOLEAN, layout VARCHAR, value_id BIGINT,
--          producer_seq BIGINT, producer_slot VARCHAR, value_path VARCHAR
SELECT
  step::BIGINT AS step,
  rank::BIGINT AS rank,
  seq::BIGINT AS seq,
  slot::VARCHAR AS slot,
  direction::VARCHAR AS direction,
  role::VARCHAR AS role,
  dtype::VARCHAR AS dtype,
  shape::BIGINT[] AS shape,
  numel::BIGINT AS numel,
  max::DOUBLE AS max,
  min::DOUBLE AS min,
  mean::DOUBLE AS mean,
  norm::DOUBLE AS norm,
  has_nan::BOOLEAN AS has_nan,
  has_posinf::BOOLEAN AS has_posinf,
  has_neginf::BOOLEAN AS has_neginf,
  nan_count::BIGINT AS nan_count,
  posinf_count::BIGINT AS posinf_count,
  neginf_count::BIGINT AS neginf_count,
  zero_count::BIGINT AS zero_count,
  saturated::BOOLEAN AS saturated,
  checksum::VARCHAR AS checksum,
  requires_grad::BOOLEAN AS requires_grad,
  layout::VARCHAR AS layout,
  value_id::BIGINT AS value_id,
  producer_seq::BIGINT AS producer_seq,
  producer_slot::VARCHAR AS producer_slot,
  value_path::VARCHAR AS value_path
FROM tensor_files
