-- comm/groups: one row per set of ranks that communication operations name as their group.
--
-- Kept apart: with the ranks in every operation, or once for each rank, what is sent would grow
-- with the square of the number of ranks.
--
-- scope:   rank
-- uses:    lib/ranks_hash
-- reads:   calls        one row per call
--          group_uses   one row per group that a rank's calls name, from comm/group_uses
-- params:  none
-- returns: ranks_hash UBIGINT, ranks BIGINT[]
-- merge:   distinct
WITH named AS (
  SELECT ranks_hash, ranks FROM group_uses
  UNION
  SELECT ranks_hash(ranks), ranks
  FROM (
    SELECT (j.value -> '$.group_ranks')::BIGINT[] AS ranks
    FROM (SELECT args FROM calls WHERE kind = 'comm' AND api = 'batch_isend_irecv') AS c,
      json_each(c.args) AS j
    WHERE json_exists(j.value, '$.class_type')
  )
)
SELECT ranks_hash, ranks
FROM named
WHERE ranks IS NOT NULL
ORDER BY ranks_hash
