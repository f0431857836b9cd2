-- rl/side_keys: one row per key, with the sides that have it and what it tells of a side.
--
-- A rollout engine knows neither advantages nor losses: who has such a key is a trainer. Users
-- call log-probs what they like: teacher_logps, actor_log_probs.
--
-- scope:   run
-- reads:   keys   one row per key of a part of either side
-- params:  none
-- returns: key VARCHAR, in_a BOOLEAN, in_b BOOLEAN, of_trainer BOOLEAN,
--          log_prob BOOLEAN
SELECT
  key,
  bool_or(side = 'a') AS in_a,
  bool_or(side = 'b') AS in_b,
  key IN (
    'advantages', 'returns', 'values', 'loss', 'grad_norm', 'old_log_prob', 'ref_log_prob', 'kl',
    'pg_loss', 'kl_loss', 'token_level_rewards'
  ) AS of_trainer,
  regexp_matches(lower(key), 'log_?p(rob)?s?(_|$)') AS log_prob
FROM keys
GROUP BY key
ORDER BY key
