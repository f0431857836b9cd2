-- rl/contexts: one row per log-prob key: how the gap behaves where one prompt and prefix led to
-- several tokens.
--
-- There both sides have one distribution each. If one side leaves out a renormalisation (top-k,
-- top-p), the gap is the same for all tokens of a context: `rest` is what is left of the level when
-- a context's median is taken away. If one side has another temperature, differences of log-probs
-- are scaled: `slope` is T_a / T_b, and `unexplained` the share of their sum of squares that it
-- leaves. Neither can be told from single tokens.
--
-- scope:   run
-- reads:   loud_tokens   one row per token, from rl/loud_tokens
-- params:  $eps DOUBLE   relative rounding of the coarsest number format on record
-- returns: key VARCHAR, contexts BIGINT, tokens BIGINT, rest DOUBLE, quiet BOOLEAN, slope DOUBLE,
--          unexplained DOUBLE
WITH drawn AS (
  SELECT key, context, id, avg(a) AS a, avg(b) AS b, avg(gap) AS gap, avg(p) AS p
  FROM loud_tokens
  GROUP BY key, context, id
),
centred AS (
  SELECT
    *,
    a - avg(a) OVER same AS from_a,
    b - avg(b) OVER same AS from_b,
    gap - median(gap) OVER same AS left_over,
    count(*) OVER same AS several
  FROM drawn
  WINDOW same AS (PARTITION BY key, context)
),
fitted AS (
  SELECT
    key,
    count(DISTINCT context) AS contexts,
    count(*) AS tokens,
    1.4826 * median(abs(left_over) / (1 - p)) FILTER (p < 0.9) AS rest,
    sum(from_a * from_b) / nullif(sum(from_a * from_a), 0) AS slope,
    sum((from_b - from_a) ^ 2) AS apart,
    sum(from_a * from_a) AS aa,
    sum(from_a * from_b) AS ab,
    sum(from_b * from_b) AS bb
  FROM centred
  WHERE several > 1
  GROUP BY key
)
SELECT
  key,
  contexts,
  tokens,
  rest,
  tokens >= 8 AND rest <= 23 * $eps AS quiet,
  slope,
  (bb - 2 * slope * ab + slope * slope * aa) / nullif(apart, 0) AS unexplained
FROM fitted
ORDER BY key
