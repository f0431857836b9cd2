-- rl/nan_advantages: one row per group of samples with an advantage that is NaN on one side alone.
--
-- GRPO divides by the standard deviation of a group's rewards: 0 where all are equal, not defined
-- for a group of one (Shao et al., "DeepSeekMath", 2024).
--
-- scope:   run
-- reads:   pairs   one row per sample that both sides hold, from rl/pairs
--          pair_values   one row per pair of samples and key
-- params:  none
-- returns: step BIGINT, name VARCHAR, samples BIGINT, in_a BOOLEAN, in_b BOOLEAN,
--          equal_rewards BOOLEAN
WITH named AS (
  SELECT pair, step, coalesce(uid, prompt::VARCHAR) AS name FROM pairs WHERE NOT padding
),
rewards AS (
  SELECT n.step, n.name, count(*) AS samples, max(v.sum_b) = min(v.sum_b) AS equal_rewards
  FROM pair_values AS v
  JOIN named AS n USING (pair)
  WHERE v.key = 'reward'
  GROUP BY n.step, n.name
),
holes AS (
  SELECT n.step, n.name, bool_or(v.nan_a > 0) AS in_a, bool_or(v.nan_b > 0) AS in_b
  FROM pair_values AS v
  JOIN named AS n USING (pair)
  WHERE v.key = 'advantages'
  GROUP BY n.step, n.name
)
SELECT h.step, h.name, r.samples, h.in_a, h.in_b, r.equal_rewards
FROM holes AS h
LEFT JOIN rewards AS r USING (step, name)
WHERE h.in_a <> h.in_b
ORDER BY h.step, h.name
