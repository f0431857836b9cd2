-- rl/clean_tokens: one row per token whose log-probs no difference in structure explains.
--
-- `gap` is b - a, `p` the probability between both. Rounding moves a log-prob the more, the less
-- likely the token is: gap / (1 - p) has about the same size everywhere below p = 0.9, where the
-- mean of a confident text would hide it. `gap_size` is that, NULL above.
--
-- scope:   run
-- reads:   tokens   one row per token that counts and log-prob key
--          pair_facts   one row per pair of samples
-- params:  none
-- returns: key VARCHAR, pair BIGINT, step BIGINT, rank BIGINT, token BIGINT, id BIGINT,
--          context UBIGINT, a DOUBLE, b DOUBLE, flipped BOOLEAN, gap DOUBLE, p DOUBLE,
--          gap_size DOUBLE
WITH explained AS (
  SELECT pair FROM pair_facts WHERE prompt_differs OR (prompt_moved AND fits_a <> fits_b)
),
measured AS (
  SELECT *, b - a AS gap, exp((a + b) / 2) AS p
  FROM tokens
  WHERE pair NOT IN (FROM explained)
)
SELECT *, CASE WHEN p < 0.9 THEN abs(gap) / (1 - p) END AS gap_size
FROM measured
