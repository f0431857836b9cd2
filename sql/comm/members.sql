-- comm/members: one row per communication instance and rank that should have taken part in it.
--
-- `place`: where the rank stands in the group, from 0; a sender stands before its receiver.
-- `recorded` is false for a rank whose own record of it is missing; the columns from `seq` on are
-- then NULL.
--
-- scope:   run
-- reads:   instances       one row per operation of a rank with its instance, from comm/instances
--          group_members   one row per group of a step and member, from comm/group_members
--          operations      one row per communication operation of a rank, from comm/operations
-- params:  none
-- returns: step BIGINT, instance VARCHAR, point_to_point BOOLEAN, rank BIGINT, place BIGINT,
--          recorded BOOLEAN, seq BIGINT, item BIGINT, name VARCHAR, api VARCHAR, root BIGINT,
--          sends BOOLEAN, async BOOLEAN, reduce_op VARCHAR, reads BOOLEAN, fills BOOLEAN,
--          read_bad BOOLEAN, made_bad BOOLEAN, bad_parts BIGINT[], read_max DOUBLE, dtype VARCHAR,
--          shape BIGINT[], fill_shape BIGINT[], in_backward BOOLEAN
WITH due AS (
  SELECT i.step, i.instance, false AS point_to_point, m.rank, m.place
  FROM (SELECT DISTINCT step, instance, group_key FROM instances WHERE source IS NULL) AS i
  JOIN group_members AS m USING (step, group_key)
  UNION ALL
  SELECT DISTINCT step, instance, true, source, 0 FROM instances WHERE source IS NOT NULL
  UNION ALL
  SELECT DISTINCT step, instance, true, target, 1 FROM instances WHERE source IS NOT NULL
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
  o.name,
  o.api,
  o.root,
  o.sends,
  o.async,
  o.reduce_op,
  o.reads,
  o.fills,
  o.read_bad,
  o.made_bad,
  o.bad_parts,
  o.read_max,
  o.dtype,
  o.shape,
  o.fill_shape,
  o.in_backward
FROM due AS d
LEFT JOIN instances AS i
  ON i.step = d.step AND i.instance = d.instance AND i.rank = d.rank
LEFT JOIN operations AS o
  ON o.step = i.step AND o.rank = i.rank AND o.seq = i.seq AND o.item = i.item
