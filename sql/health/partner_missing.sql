-- health/partner_missing: one row per communication instance that lacks a member whose shard is
-- whole.
--
-- The member's record is there and does not hold the call: it never made it, or the call was
-- filtered out. Ranks without a whole record are told of elsewhere.
--
-- scope:   run
-- reads:   members   one row per communication instance and rank, from comm/members
--          shards    one row per step and rank on record, from health/shards
-- params:  none
-- returns: step BIGINT, instance VARCHAR, rank BIGINT, by_rank BIGINT, by_call VARCHAR
SELECT
  m.step,
  m.instance,
  m.rank,
  o.rank AS by_rank,
  o.name AS by_call
FROM members AS m
JOIN shards AS s USING (step, rank)
JOIN (
  SELECT step, instance, min(rank) AS rank, arg_min(name, rank) AS name
  FROM members
  WHERE recorded
  GROUP BY step, instance
) AS o USING (step, instance)
WHERE NOT m.recorded AND s.complete
ORDER BY m.step, m.instance, m.rank
