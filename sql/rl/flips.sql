-- rl/flips: one row per step and rank of A with expert sets on both sides, and how many are others.
--
-- scope:   run
-- reads:   pairs   one row per sample that both sides hold, from rl/pairs
--          pair_facts   one row per pair of samples
-- params:  none
-- returns: step BIGINT, rank BIGINT, routed BIGINT, flipped BIGINT, pair BIGINT
SELECT
  p.step,
  p.a_rank AS rank,
  sum(f.routed)::BIGINT AS routed,
  sum(f.flipped)::BIGINT AS flipped,
  min(p.pair) FILTER (f.flipped > 0) AS pair
FROM pair_facts AS f
JOIN pairs AS p USING (pair)
WHERE f.routed > 0
GROUP BY p.step, p.a_rank
ORDER BY p.step, rank
