-- health/missing_ranks: one row per step and rank that the run had and that left no shard.
--
-- scope:   run
-- reads:   expected_ranks   one row per rank of the run, from health/expected_ranks
--          shards           one row per step and rank on record, from health/shards
-- params:  none
-- returns: step BIGINT, rank BIGINT
SELECT s.step, e.rank
FROM (SELECT DISTINCT step FROM shards) AS s
CROSS JOIN expected_ranks AS e
ANTI JOIN shards AS h ON h.step = s.step AND h.rank = e.rank
ORDER BY s.step, e.rank
