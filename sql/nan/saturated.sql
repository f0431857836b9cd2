-- nan/saturated: one row per tensor that stands at its dtype's largest finite value.
--
-- scope:   rank
-- reads:   tensors   one row per tensor of a call
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, slot VARCHAR, direction VARCHAR, role VARCHAR,
--          dtype VARCHAR
SELECT step, rank, seq, slot, direction, role, dtype
FROM tensors
WHERE saturated
