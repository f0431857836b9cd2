-- rl/loud_tokens: one row per token of the steps and ranks that are louder than rounding.
--
-- What explains a gap is looked for where there is one: quiet cells would hide it in a median.
--
-- scope:   run
-- reads:   clean_tokens   one row per token, from rl/clean_tokens
--          noise   one row per log-prob key, step and rank, from rl/noise
-- params:  none
-- returns: key VARCHAR, pair BIGINT, step BIGINT, rank BIGINT, token BIGINT, id BIGINT,
--          context UBIGINT, a DOUBLE, b DOUBLE, flipped BOOLEAN, gap DOUBLE, p DOUBLE,
--          gap_size DOUBLE
SELECT t.*
FROM clean_tokens AS t
JOIN noise AS n USING (key, step, rank)
WHERE n.loud
