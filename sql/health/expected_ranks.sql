-- health/expected_ranks: one row per rank that the run had, from 0.
--
-- A rank is known of when it left a shard, when another rank's communication names it, or when a
-- gathered list or the ratio of a whole to its shard tells how many there were. A highest rank that
-- nothing names cannot be known of.
--
-- scope:   run
-- reads:   shards       one row per step and rank on record, from health/shards
--          operations   one row per communication operation of a rank, from comm/operations
--          groups       one row per set of ranks that is named, from comm/groups
-- params:  $world_size BIGINT   number of ranks if it is on record, else NULL
-- returns: rank BIGINT
WITH hints AS (
  SELECT max(rank) + 1 AS ranks FROM shards
  UNION ALL
  SELECT max(list_max(ranks)) + 1 FROM groups
  UNION ALL
  SELECT max(greatest(peer, root)) + 1 FROM operations
  UNION ALL
  SELECT max(parts) FROM operations
  WHERE group_id IS NULL
    AND api IN ('all_gather', 'gather', 'scatter', 'reduce_scatter', 'all_to_all')
  UNION ALL
  SELECT max(ratio) FROM operations
  WHERE group_id IS NULL
    AND api IN (
      'all_gather_into_tensor', '_all_gather_base', 'reduce_scatter_tensor', '_reduce_scatter_base'
    )
  UNION ALL
  SELECT $world_size
)
SELECT unnest(range(max(ranks)))::BIGINT AS rank
FROM hints
ORDER BY rank
