-- rl/gap_signs: one row per log-prob key: the sign of the gap among unlikely and likely tokens.
--
-- A missing renormalisation has one sign everywhere. A temperature raises the unlikely and lowers
-- the likely, or the other way round. Gaps within rounding have no say. The mean of exp(b - a)
-- under samples of a is 1 where a reports what was sampled from, and so for b. `unscaled` is the
-- share of the gaps' sum of squares that one factor on all log-probs of a leaves: near 0, b's are
-- multiples of a's.
--
-- scope:   run
-- reads:   loud_tokens   one row per token, from rl/loud_tokens
-- params:  $eps DOUBLE   relative rounding of the coarsest number format on record
-- returns: key VARCHAR, up DOUBLE, down DOUBLE, unlikely BIGINT, unlikely_up DOUBLE,
--          likely BIGINT, likely_up DOUBLE, ratio_b DOUBLE, ratio_a DOUBLE,
--          unscaled DOUBLE
WITH said AS (
  SELECT *, gap > 0 AS is_up
  FROM loud_tokens
  WHERE abs(gap) > 4 * $eps AND gap_size IS NOT NULL
),
means AS (
  SELECT key, avg(exp(gap)) AS ratio_b, avg(exp(-gap)) AS ratio_a FROM loud_tokens GROUP BY key
)
SELECT
  key,
  avg(is_up::INTEGER) AS up,
  avg((NOT is_up)::INTEGER) AS down,
  count(*) FILTER (p < 0.05) AS unlikely,
  avg(is_up::INTEGER) FILTER (p < 0.05) AS unlikely_up,
  count(*) FILTER (p > 0.3) AS likely,
  avg(is_up::INTEGER) FILTER (p > 0.3) AS likely_up,
  any_value(ratio_b) AS ratio_b,
  any_value(ratio_a) AS ratio_a,
  1 - sum(a * gap) ^ 2 / nullif(sum(a * a) * sum(gap * gap), 0) AS unscaled
FROM said
JOIN means USING (key)
GROUP BY key
ORDER BY key
