-- rl/worst_samples: one row per log-prob key and sample, of the hundred with the largest gap.
--
-- scope:   run
-- reads:   pairs   one row per sample that both sides hold, from rl/pairs
--          pair_values   one row per pair of samples and key
--          pair_facts   one row per pair of samples
-- params:  none
-- returns: key VARCHAR, pair BIGINT, step BIGINT, a_rank BIGINT, b_rank BIGINT, uid VARCHAR,
--          sample BIGINT, n BIGINT, mean DOUBLE, mean_abs DOUBLE, max_abs DOUBLE, token BIGINT,
--          k3 DOUBLE, clipped BIGINT, tokens_a BIGINT, tokens_b BIGINT, first_difference BIGINT,
--          a_part BIGINT, a_micro BIGINT, a_place BIGINT, b_part BIGINT, b_micro BIGINT,
--          b_place BIGINT
WITH worst AS (
  SELECT key, pair
  FROM pair_values
  WHERE sum_k3 IS NOT NULL AND n > 0 AND pair NOT IN (SELECT pair FROM pairs WHERE padding)
  QUALIFY row_number() OVER (PARTITION BY key ORDER BY max_abs DESC, pair) <= 100
)
SELECT
  v.key,
  v.pair,
  p.step,
  p.a_rank,
  p.b_rank,
  p.uid,
  p.sample,
  v.n,
  v.sum / nullif(v.n, 0) AS mean,
  v.sum_abs / nullif(v.n, 0) AS mean_abs,
  v.max_abs,
  v.max_token AS token,
  v.sum_k3 / nullif(v.n, 0) AS k3,
  v.clipped,
  f.tokens_a,
  f.tokens_b,
  f.first_difference,
  p.a_part,
  p.a_micro,
  p.a_place,
  p.b_part,
  p.b_micro,
  p.b_place
FROM worst
JOIN pair_values AS v USING (key, pair)
JOIN pairs AS p USING (pair)
LEFT JOIN pair_facts AS f USING (pair)
ORDER BY v.key, v.max_abs DESC, v.pair
