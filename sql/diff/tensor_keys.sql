-- diff/tensor_keys: one row per tensor of one dump, with what a tensor of the paired call is found
-- by, `key`.
--
-- It is the slot; between two frameworks, whose calls take the same tensors in other positions, the
-- place among the tensors that go in or come out. Parameters have their PyTorch name. Numbers are
-- those of the part that this rank holds, and so is `numel`; the shape of a DTensor is that of the
-- whole, `sharding` and `shards` say how it is cut.
--
-- scope:   rank
-- uses:    lib/parameter_key, lib/sharding, lib/shards_of
-- reads:   tensors   one row per tensor of a call
-- params:  $cross BOOLEAN   the dumps are of two frameworks
-- returns: step BIGINT, seq BIGINT, slot VARCHAR, key VARCHAR, direction VARCHAR, role VARCHAR,
--          dtype VARCHAR, shape BIGINT[], sharding VARCHAR, shards BIGINT, numel BIGINT,
--          max DOUBLE, min DOUBLE, mean DOUBLE, norm DOUBLE, has_nan BOOLEAN,
--          has_posinf BOOLEAN, has_neginf BOOLEAN, zero_count BIGINT, checksum VARCHAR,
--          requires_grad BOOLEAN, value_id BIGINT, producer_seq BIGINT, producer_slot VARCHAR,
--          value_path VARCHAR
WITH places AS (
  SELECT
    step,
    rank,
    seq,
    slot,
    concat(
      split_part(slot, '.', 1),
      row_number() OVER (
        PARTITION BY step, rank, seq, split_part(slot, '.', 1)
        ORDER BY try_cast(split_part(slot, '.', 2) AS BIGINT) NULLS LAST, length(slot), slot
      )
    ) AS place
  FROM tensors
  WHERE $cross AND role IS DISTINCT FROM 'echo' AND split_part(slot, '.', 1) IN ('input', 'output')
),
keys AS (
  SELECT slot, parameter_key(slot) AS key FROM (SELECT DISTINCT slot FROM tensors)
),
cuts AS (
  SELECT layout, sharding(layout) AS sharding
  FROM (SELECT DISTINCT layout FROM tensors WHERE layout IS NOT NULL)
),
layouts AS (
  SELECT layout, sharding, shards_of(sharding) AS shards FROM cuts
)
SELECT
  t.step,
  t.seq,
  t.slot,
  coalesce(p.place, k.key) AS key,
  t.direction,
  t.role,
  t.dtype,
  t.shape,
  l.sharding,
  l.shards,
  t.numel // coalesce(l.shards, 1) AS numel,
  t.max,
  t.min,
  t.mean,
  t.norm,
  t.has_nan,
  t.has_posinf,
  t.has_neginf,
  t.zero_count,
  t.checksum,
  t.requires_grad,
  t.value_id,
  t.producer_seq,
  t.producer_slot,
  t.value_path
FROM tensors AS t
JOIN keys AS k USING (slot)
LEFT JOIN places AS p USING (step, rank, seq, slot)
LEFT JOIN layouts AS l ON l.layout = t.layout
WHERE t.role IS DISTINCT FROM 'echo'
