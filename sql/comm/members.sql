-- comm/members: one row per communication instance and rank that should have taken part in it.
--
-- `recorded` is false for a rank whose own record of it is missing; the columns from `seq` on are
-- then NULL. `place`: where the rank stands in the group, from 0.
--
-- scope:   run
-- reads:   instances    one row per operation of a rank with its instance, from comm/instances
--          operations   one row per communication operation of a rank, from comm/operations
-- params:  none
-- returns: step BIGINT, instance VARCHAR, point_to_point BOOLEAN, rank BIGINT, place BIGINT,
--          recorded BOOLEAN, seq BIGINT, item VARCHAR, name VARCHAR, api VARCHAR, sends BOOLEAN,
--          async BOOLEAN, reduce_op VARCHAR, reads BOOLEAN, fills BOOLEAN, read_bad BOOLEAN,
--          made_bad BOOLEAN, bad_parts BIGINT[], read_max DOUBLE, dtype VARCHAR, shape BIGINT[],
--          fill_shape BIGINT[]
WITH due AS (
  SELECT DISTINCT
    step, instance, point_to_point, unnest(members) AS rank, unnest(range(len(members))) AS place
  FROM instances
)
SELECT
  d.step,
  d.instance,
  d.point_to_point,
  d.rank,
  d.place,
  i.rank IS NOT NULL AS recorded,
  i.seq,
  i.item,
  c.name,
  c.api,
  c.sends,
  c.async,
  c.reduce_op,
  c.reads,
  c.fills,
  c.read_bad,
  c.made_bad,
  c.bad_parts,
  c.read_max,
  c.dtype,
  c.shape,
  c.fill_shape
FROM due AS d
LEFT JOIN instances AS i
  ON i.step = d.step AND i.instance = d.instance AND i.rank = d.rank
LEFT JOIN operations AS c
  ON c.step = i.step AND c.rank = i.rank AND c.seq = i.seq AND c.item = i.item
ORDER BY d.step, d.instance, d.rank
