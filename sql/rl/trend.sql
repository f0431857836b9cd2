-- rl/trend: one row per log-prob key and step: how far the sides are apart, with the tails.
--
-- Sums are over all tokens that count; the quantiles of |b - a| over those that rules look at.
--
-- scope:   run
-- reads:   pairs   one row per sample that both sides hold, from rl/pairs
--          pair_values   one row per pair of samples and key
--          clean_tokens   one row per token, from rl/clean_tokens
-- params:  none
-- returns: key VARCHAR, step BIGINT, n BIGINT, mean DOUBLE, mean_abs DOUBLE, max_abs DOUBLE,
--          p50 DOUBLE, p99 DOUBLE, k1 DOUBLE, k3 DOUBLE, clip_share DOUBLE
WITH tails AS (
  SELECT key, step, median(abs(gap)) AS p50, quantile_cont(abs(gap), 0.99) AS p99
  FROM clean_tokens
  GROUP BY key, step
),
sums AS (
  SELECT
    v.key,
    p.step,
    sum(v.n)::BIGINT AS n,
    sum(v.sum) / nullif(sum(v.n), 0) AS mean,
    sum(v.sum_abs) / nullif(sum(v.n), 0) AS mean_abs,
    max(v.max_abs) AS max_abs,
    sum(v.sum_k3) / nullif(sum(v.n), 0) AS k3,
    sum(v.clipped) / nullif(sum(v.n), 0) AS clip_share
  FROM pair_values AS v
  JOIN pairs AS p USING (pair)
  WHERE v.sum_k3 IS NOT NULL AND NOT p.padding
  GROUP BY v.key, p.step
)
SELECT
  s.key, s.step, s.n, s.mean, s.mean_abs, s.max_abs, t.p50, t.p99, -s.mean AS k1, s.k3, s.clip_share
FROM sums AS s
LEFT JOIN tails AS t USING (key, step)
ORDER BY s.key, s.step
