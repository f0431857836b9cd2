-- comm/instances: one row per communication operation of a rank, with the instance it took part in.
--
-- Collectives pair by their running number in the group, a send with a receive by their running
-- number between the two ranks, in the group and under the tag: never by the call number in the
-- name, which counts all groups together, and never by time. A record may name the group of all
-- ranks or leave it out: both are one group then, and its operations are counted anew.
--
-- scope:   run
-- reads:   operations       one row per communication operation of a rank, from comm/operations
--          expected_ranks   one row per rank of the run, from health/expected_ranks
-- params:  none
-- returns: step BIGINT, instance VARCHAR, rank BIGINT, seq BIGINT, item BIGINT, members BIGINT[],
--          point_to_point BOOLEAN
WITH world AS (
  SELECT
    (SELECT list(rank ORDER BY rank) FROM expected_ranks) AS ranks,
    (SELECT bool_or(group_id IS NULL AND group_ranks IS NULL) FROM operations) AS unnamed
),
keyed AS (
  SELECT
    i.*,
    coalesce(i.api LIKE '%send%' OR i.api LIKE '%recv%', false) AS point_to_point,
    CASE
      WHEN i.group_id IS NULL AND i.group_ranks IS NULL THEN ''
      WHEN w.unnamed AND len(i.group_ranks) = len(w.ranks) THEN ''
      ELSE coalesce(i.group_id, array_to_string(i.group_ranks, ','))
    END AS group_key,
    CASE
      WHEN i.group_id IS NULL AND i.group_ranks IS NULL THEN w.ranks
      ELSE i.group_ranks
    END AS ranks
  FROM operations AS i
  CROSS JOIN world AS w
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
  -- ranks that are not on record for this group: whoever else used it
  coalesce(
    ranks, list_sort(list_distinct(list(rank) OVER (PARTITION BY step, group_key)))
  ) AS members,
  false AS point_to_point
FROM collectives
UNION ALL
SELECT
  step,
  concat(source, '>', target, ' ', group_key, ' ', coalesce(tag, 0), '#', number),
  rank,
  seq,
  item,
  [source, target],
  true
FROM transfers
