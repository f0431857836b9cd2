-- comm/instances: one row per communication operation of a rank, with the instance it took part in.
--
-- Collectives pair by their running number in the group, a send with a receive by their running
-- number between the two ranks, in the group and under the tag: never by the call number in the
-- name, which counts all groups together, and never by time. A record may name the group of all
-- ranks or leave it out: both are one group then, and its operations are counted anew.
--
-- scope:   run
-- reads:   operations       one row per communication operation of a rank, from comm/operations
--          groups           one row per set of ranks that is named, from comm/groups
--          expected_ranks   one row per rank of the run, from health/expected_ranks
-- params:  none
-- returns: step BIGINT, instance VARCHAR, rank BIGINT, seq BIGINT, item BIGINT, group_key VARCHAR,
--          ranks_hash UBIGINT, source BIGINT, target BIGINT
WITH world AS (
  SELECT
    (SELECT count(*) FROM expected_ranks) AS size,
    (SELECT bool_or(group_id IS NULL AND ranks_hash IS NULL) FROM operations) AS unnamed
),
keys AS (
  SELECT
    ranks_hash,
    CASE WHEN len(ranks) = size AND unnamed THEN '' END AS of_all,
    array_to_string(ranks, ',') AS text
  FROM (SELECT DISTINCT ranks_hash, ranks FROM groups)
  CROSS JOIN world
),
keyed AS (
  SELECT
    i.*,
    coalesce(i.api LIKE '%send%' OR i.api LIKE '%recv%', false) AS point_to_point,
    coalesce(k.of_all, i.group_id, k.text, '') AS group_key
  FROM operations AS i
  LEFT JOIN keys AS k USING (ranks_hash)
),
collectives AS (
  SELECT
    *,
    CASE
      WHEN group_seq IS NOT NULL
        AND min(coalesce(group_id, '')) OVER named = max(coalesce(group_id, '')) OVER named
        THEN group_seq
      ELSE row_number() OVER (named ORDER BY seq, item) - 1
    END AS number
  FROM keyed
  WHERE NOT point_to_point
  WINDOW named AS (PARTITION BY step, rank, group_key)
),
transfers AS (
  SELECT
    *,
    CASE WHEN sends THEN rank ELSE peer END AS source,
    CASE WHEN sends THEN peer ELSE rank END AS target,
    row_number() OVER (
      PARTITION BY step, rank, sends, peer, group_key, coalesce(tag, 0) ORDER BY seq, item
    ) - 1 AS number
  FROM keyed
  WHERE point_to_point AND peer IS NOT NULL
)
SELECT
  step,
  concat(group_key, '#', number) AS instance,
  rank,
  seq,
  item,
  group_key,
  ranks_hash,
  NULL::BIGINT AS source,
  NULL::BIGINT AS target
FROM collectives
UNION ALL
SELECT
  step,
  concat(source, '>', target, ' ', group_key, ' ', coalesce(tag, 0), '#', number),
  rank,
  seq,
  item,
  group_key,
  ranks_hash,
  source,
  target
FROM transfers
