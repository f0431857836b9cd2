-- rl/noise: one row per log-prob key, step and rank: how far its two sides are apart.
--
-- `level` is a robust standard deviation, 1.4826 times the median (Rousseeuw and Croux, 1993), of
-- the gap that rounding would make the same everywhere (rl/clean_tokens). Rounding to a format with
-- relative error eps gives up to 13 eps in healthy runs of bfloat16 against float32, stale weights
-- of one step 38 eps and more: what is above 23 eps is loud. Fewer than 8 tokens tell nothing:
-- where a step and rank has no more, all such of the key are judged together.
--
-- scope:   run
-- reads:   clean_tokens   one row per token, from rl/clean_tokens
-- params:  $eps DOUBLE   relative rounding of the coarsest number format on record
-- returns: key VARCHAR, step BIGINT, rank BIGINT, tokens BIGINT, level DOUBLE, loud BOOLEAN
WITH cells AS (
  SELECT
    key,
    step,
    rank,
    count(*) AS tokens,
    count(gap_size) AS told,
    1.4826 * median(gap_size) AS level
  FROM clean_tokens
  GROUP BY key, step, rank
),
together AS (
  SELECT key, count(gap_size) AS told, 1.4826 * median(gap_size) AS level
  FROM clean_tokens
  SEMI JOIN (FROM cells WHERE told < 8) USING (key, step, rank)
  GROUP BY key
  HAVING count(gap_size) >= 8
),
judged AS (
  SELECT
    c.key,
    c.step,
    c.rank,
    c.tokens,
    CASE WHEN c.told >= 8 THEN c.level ELSE coalesce(t.level, c.level) END AS level,
    c.told >= 8 OR t.told IS NOT NULL AS enough
  FROM cells AS c
  LEFT JOIN together AS t USING (key)
)
SELECT key, step, rank, tokens, level, CASE WHEN enough THEN level > 23 * $eps END AS loud
FROM judged
ORDER BY key, step, rank
