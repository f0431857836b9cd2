-- rl/counts: one row: how many samples were joined, over which steps and ranks.
--
-- scope:   run
-- reads:   samples   one row per sample of either side
--          keys   one row per key of a part of either side
--          pairs   one row per sample that both sides hold, from rl/pairs
-- params:  none
-- returns: matched BIGINT, samples_a BIGINT, samples_b BIGINT, steps BIGINT[], ranks_a BIGINT,
--          ranks_b BIGINT
SELECT
  (SELECT count(*) FROM pairs WHERE NOT padding) AS matched,
  (SELECT count(*) FROM samples WHERE side = 'a') AS samples_a,
  (SELECT count(*) FROM samples WHERE side = 'b') AS samples_b,
  (SELECT coalesce(list(DISTINCT step ORDER BY step), []) FROM keys) AS steps,
  (SELECT count(DISTINCT rank) FROM keys WHERE side = 'a') AS ranks_a,
  (SELECT count(DISTINCT rank) FROM keys WHERE side = 'b') AS ranks_b
ORDER BY matched
