-- rl/routing: one row per log-prob key with routing on both sides, with how the large gaps and the
-- tokens predicted from positions with other experts go together.
--
-- Flipped expert sets alone are no fault: near ties flip by rounding, and log-probs do not care.
-- Contexts are compared, not tokens, since a prompt's samples share them. `chance` is the
-- probability that as many of the loud contexts are flipped ones if flips had nothing to do with
-- it (Fisher's exact test, one-sided: the tail of the hypergeometric distribution); the smaller one
-- of loud by the noise floor and by twice of it, doubled since there are two.
--
-- scope:   run
-- reads:   clean_tokens   one row per token, from rl/clean_tokens
-- params:  $eps DOUBLE   relative rounding of the coarsest number format on record
-- returns: key VARCHAR, contexts BIGINT, flipped BIGINT, loud BIGINT, loud_flipped BIGINT,
--          chance DOUBLE, tied BOOLEAN
WITH each_context AS (
  SELECT key, context, bool_or(flipped) AS flipped, avg(gap_size) AS size
  FROM clean_tokens
  WHERE flipped IS NOT NULL AND gap_size IS NOT NULL
  GROUP BY key, context
),
counted AS (
  SELECT
    e.key,
    l.floor,
    count(*) AS contexts,
    count(*) FILTER (e.flipped) AS flipped,
    count(*) FILTER (e.size > l.floor) AS loud,
    count(*) FILTER (e.flipped AND e.size > l.floor) AS loud_flipped
  FROM each_context AS e
  CROSS JOIN (SELECT unnest([23 * $eps, 46 * $eps]) AS floor) AS l
  GROUP BY e.key, l.floor
),
tails AS (
  SELECT
    key,
    floor,
    sum(exp(
      lgamma(flipped + 1) - lgamma(k + 1) - lgamma(flipped - k + 1)
      + lgamma(contexts - flipped + 1) - lgamma(loud - k + 1)
      - lgamma(contexts - flipped - loud + k + 1)
      - lgamma(contexts + 1) + lgamma(loud + 1) + lgamma(contexts - loud + 1)
    )) AS chance
  FROM counted
  CROSS JOIN LATERAL (SELECT unnest(range(loud_flipped, least(loud, flipped) + 1)) AS k)
  WHERE contexts - flipped - loud + k >= 0
  GROUP BY key, floor
),
best AS (
  SELECT c.*, least(2 * t.chance, 1.0) AS chance
  FROM counted AS c
  JOIN tails AS t USING (key, floor)
  QUALIFY row_number() OVER (PARTITION BY c.key ORDER BY t.chance, c.floor) = 1
)
SELECT
  key,
  contexts,
  flipped,
  loud,
  loud_flipped,
  chance,
  loud_flipped >= 2 AND chance < 0.005 AS tied
FROM best
ORDER BY key
