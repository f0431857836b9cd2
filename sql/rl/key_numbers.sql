-- rl/key_numbers: one row per key that holds numbers: how far its two sides are apart.
--
-- Over numbers that both masks count, before the first differing id, finite on both sides; b - a.
-- KL estimators k1, k2, k3 after Schulman, "Approximating KL Divergence" (2020), and the share of
-- ratios exp(b - a) that PPO would clip at 0.2, of log-probs only.
--
-- scope:   run
-- reads:   pairs   one row per sample that both sides hold, from rl/pairs
--          pair_values   one row per pair of samples and key
-- params:  none
-- returns: key VARCHAR, n BIGINT, mean DOUBLE, mean_abs DOUBLE, max_abs DOUBLE, step BIGINT,
--          rank BIGINT, uid VARCHAR, sample BIGINT, token BIGINT, differ BIGINT, nan_a BIGINT,
--          nan_b BIGINT, k1 DOUBLE, k2 DOUBLE, k3 DOUBLE, mean_ratio DOUBLE, clip_share DOUBLE,
--          pearson DOUBLE
WITH sums AS (
  SELECT
    v.key,
    sum(v.n)::BIGINT AS n,
    sum(v.sum) AS total,
    sum(v.sum_abs) AS total_abs,
    max(v.max_abs) FILTER (v.n > 0) AS max_abs,
    arg_max(v.pair, (v.max_abs, -v.pair)) FILTER (v.n > 0) AS worst,
    arg_max(v.max_token, (v.max_abs, -v.pair)) FILTER (v.n > 0) AS token,
    sum(v.differ)::BIGINT AS differ,
    sum(v.nan_a)::BIGINT AS nan_a,
    sum(v.nan_b)::BIGINT AS nan_b,
    sum(v.sum_k2) AS k2,
    sum(v.sum_k3) AS k3,
    sum(v.sum_ratio) AS ratio,
    sum(v.clipped) AS clipped,
    sum(v.sum_a) AS a,
    sum(v.sum_b) AS b,
    sum(v.sum_aa) AS aa,
    sum(v.sum_bb) AS bb,
    sum(v.sum_ab) AS ab
  FROM pair_values AS v
  JOIN pairs AS p USING (pair)
  WHERE NOT p.padding
  GROUP BY v.key
)
SELECT
  s.key,
  s.n,
  s.total / nullif(s.n, 0) AS mean,
  s.total_abs / nullif(s.n, 0) AS mean_abs,
  s.max_abs,
  p.step,
  p.a_rank AS rank,
  p.uid,
  p.sample,
  CASE WHEN s.n > 0 THEN s.token END AS token,
  s.differ,
  s.nan_a,
  s.nan_b,
  CASE WHEN s.k3 IS NOT NULL THEN -s.total / nullif(s.n, 0) END AS k1,
  s.k2 / nullif(s.n, 0) AS k2,
  s.k3 / nullif(s.n, 0) AS k3,
  1 + s.ratio / nullif(s.n, 0) AS mean_ratio,
  s.clipped / nullif(s.n, 0) AS clip_share,
  CASE
    WHEN s.n > 1 AND s.aa * s.n > s.a ^ 2 AND s.bb * s.n > s.b ^ 2
    THEN (s.n * s.ab - s.a * s.b) / sqrt((s.n * s.aa - s.a ^ 2) * (s.n * s.bb - s.b ^ 2))
  END AS pearson
FROM sums AS s
LEFT JOIN pairs AS p ON p.pair = s.worst
ORDER BY s.key
