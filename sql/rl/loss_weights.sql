-- rl/loss_weights: one row per step: how the ratio of the two losses goes with the tokens of the
-- micro batch.
--
-- If one side weighs its micro batches otherwise (mean of means against mean over all tokens), the
-- ratio times the tokens, or over them, is the same for all; a forgotten division by their number
-- leaves the ratio itself the same. Spreads are relative: (max - min) / mean.
--
-- scope:   run
-- reads:   arrays   one row per value of A
-- params:  none
-- returns: step BIGINT, batches BIGINT, ratio DOUBLE, spread DOUBLE, spread_times DOUBLE,
--          spread_over DOUBLE
WITH losses AS (
  SELECT step, value_2 / value_1 AS ratio, counted::DOUBLE AS tokens
  FROM arrays
  WHERE contains(key, 'loss')
    AND entry = ''
    AND same_samples
    AND value_1 IS NOT NULL
    AND abs(value_1) > 1e-6
    AND abs(value_2) > 1e-6
    AND isfinite(value_1)
    AND isfinite(value_2)
)
SELECT
  step,
  count(*) AS batches,
  avg(ratio) AS ratio,
  (max(ratio) - min(ratio)) / nullif(abs(avg(ratio)), 0) AS spread,
  (max(ratio * tokens) - min(ratio * tokens)) / nullif(abs(avg(ratio * tokens)), 0)
    AS spread_times,
  (max(ratio / tokens) - min(ratio / tokens)) / nullif(abs(avg(ratio / tokens)), 0)
    AS spread_over
FROM losses
GROUP BY step
ORDER BY step
