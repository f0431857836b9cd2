-- rl/outliers: one row per log-prob key, prompt and prefix with a token far from the rest.
--
-- Contexts, not tokens: the samples of a prompt share them. A few are normal: a tie at the edge of
-- a top-k falls one way in bfloat16 and the other in float32.
--
-- scope:   run
-- reads:   clean_tokens   one row per token, from rl/clean_tokens
--          pairs   one row per sample that both sides hold, from rl/pairs
-- params:  $eps DOUBLE   relative rounding of the coarsest number format on record
-- returns: key VARCHAR, step BIGINT, rank BIGINT, pair BIGINT, token BIGINT, tokens BIGINT,
--          gap DOUBLE, contexts BIGINT, uid VARCHAR, sample BIGINT
WITH every_context AS (
  SELECT key, count(DISTINCT context) AS contexts FROM clean_tokens GROUP BY key
),
far AS (
  SELECT
    key,
    min(step) AS step,
    arg_min(rank, (step, pair)) AS rank,
    arg_min(pair, (step, pair)) AS pair,
    arg_min(token, (step, pair)) AS token,
    count(*) AS tokens,
    arg_max(gap, abs(gap)) AS gap,
    any_value(contexts) AS contexts
  FROM clean_tokens
  JOIN every_context USING (key)
  WHERE abs(gap) > 26 * $eps AND abs(gap) / greatest(1 - p, 0.1) > 46 * $eps
  GROUP BY key, context
)
SELECT far.*, pairs.uid, pairs.sample
FROM far
LEFT JOIN pairs USING (pair)
ORDER BY key, far.step, pair, token
