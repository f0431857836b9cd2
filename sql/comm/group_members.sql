-- comm/group_members: one row per group of ranks used in a step and member of it.
--
-- `place`: where the rank stands in the group, from 0. Not all ranks need name the same members:
-- whoever any of them names is one. Of a group whose ranks nobody names, whoever used it is one.
--
-- scope:   run
-- reads:   instances        one row per operation of a rank with its instance, from comm/instances
--          groups           one row per set of ranks that is named, from comm/groups
--          expected_ranks   one row per rank of the run, from health/expected_ranks
-- params:  none
-- returns: step BIGINT, group_key VARCHAR, rank BIGINT, place BIGINT
WITH used AS (
  SELECT DISTINCT step, group_key, ranks_hash, rank FROM instances WHERE source IS NULL
),
named AS (
  SELECT
    step, group_key, unnest(ranks) AS rank, unnest(range(len(ranks))) AS place
  FROM (SELECT DISTINCT step, group_key, ranks_hash FROM used WHERE group_key <> '')
  JOIN (SELECT DISTINCT ranks_hash, ranks FROM groups) USING (ranks_hash)
),
of_all AS (
  SELECT u.step, '' AS group_key, e.rank, e.rank AS place
  FROM (SELECT DISTINCT step FROM used WHERE group_key = '') AS u
  CROSS JOIN expected_ranks AS e
),
unnamed AS (
  SELECT
    step, group_key, rank, row_number() OVER (PARTITION BY step, group_key ORDER BY rank) - 1
  FROM (SELECT DISTINCT step, group_key, rank FROM used WHERE group_key <> '')
  ANTI JOIN named USING (step, group_key)
)
SELECT step, group_key, rank, min(place) AS place
FROM (FROM named UNION ALL FROM of_all UNION ALL FROM unnamed)
GROUP BY step, group_key, rank
