-- checkpoint/layers: one row per layer and kind of weight: how far its tensors are apart at most.
--
-- The relative difference is the norm of a - b over that of a; where it is largest, training went
-- apart, or a weight was converted wrongly. What could not be compared counts apart.
--
-- scope:   run
-- reads:   verdicts   one row per pair of tensors, from checkpoint/verdicts
-- params:  none
-- returns: part VARCHAR, layer BIGINT, tensors BIGINT, differing BIGINT, unknown BIGINT,
--          relative_l2 DOUBLE, name VARCHAR
SELECT
  part,
  layer,
  count(*) AS tensors,
  count(*) FILTER (WHERE status = 'different') AS differing,
  count(*) FILTER (WHERE status = 'incomparable') AS unknown,
  max(relative_l2) FILTER (WHERE status <> 'incomparable') AS relative_l2,
  arg_max(name, (relative_l2, -pair)) FILTER (WHERE status <> 'incomparable') AS name
FROM verdicts
WHERE kind = 'weight'
GROUP BY part, layer
ORDER BY part, layer NULLS FIRST
