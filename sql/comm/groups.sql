-- comm/groups: one row per rank and set of ranks that its communication operations name as their
-- group.
--
-- Kept apart: with the ranks in every operation, what is sent would grow with the square of the
-- number of ranks.
--
-- scope:   rank
-- uses:    lib/ranks_hash
-- reads:   calls        one row per call
--          group_uses   one row per group that a rank's calls name, from comm/group_uses
-- params:  none
-- returns: rank BIGINT, ranks_hash UBIGINT, ranks BIGINT[]
WITH named AS (
  SELECT rank, ranks FROM group_uses
  UNION ALL
  SELECT c.rank, (j.value -> '$.group_ranks')::BIGINT[]
  FROM (SELECT rank, args FROM calls WHERE kind = 'comm' AND api = 'batch_isend_irecv') AS c,
    json_each(c.args) AS j
  WHERE json_exists(j.value, '$.class_type')
)
SELECT DISTINCT rank, ranks_hash(ranks) AS ranks_hash, ranks
FROM named
WHERE ranks IS NOT NULL
ORDER BY rank, ranks_hash
