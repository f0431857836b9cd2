-- rl/shifts: one row per log-prob key and shift: how far the sides are apart if b's log-probs are
-- laid that many tokens later against a's.
--
-- An off-by-one in gathering log-probs makes one shift quiet and 0 loud.
--
-- scope:   run
-- reads:   loud_tokens   one row per token, from rl/loud_tokens
-- params:  $eps DOUBLE   relative rounding of the coarsest number format on record
-- returns: key VARCHAR, shift BIGINT, tokens BIGINT, level DOUBLE, quiet BOOLEAN
WITH shifted AS (
  SELECT x.key, s.shift, abs(y.b - x.a) AS gap, exp((x.a + y.b) / 2) AS p
  FROM loud_tokens AS x
  CROSS JOIN (SELECT unnest([-2, -1, 0, 1, 2])::BIGINT AS shift) AS s
  JOIN loud_tokens AS y
    ON y.key = x.key AND y.pair = x.pair AND y.token = x.token + s.shift
),
levels AS (
  SELECT
    key,
    shift,
    count(*) FILTER (p < 0.9) AS tokens,
    1.4826 * median(gap / (1 - p)) FILTER (p < 0.9) AS level
  FROM shifted
  GROUP BY key, shift
)
SELECT key, shift, tokens, level, tokens >= 8 AND level <= 23 * $eps AS quiet
FROM levels
ORDER BY key, shift
