-- nan/origins: one row per origin on record: where a NaN or an infinity that lives began.
--
-- Left out: steps that recovered from a loss scale that was too high, and weights that were bad
-- when a step began after an earlier step on record went bad: they are a consequence of it.
--
-- scope:   run
-- reads:   candidates        one row per place where one began, from nan/candidates
--          recovered_steps   one row per step that recovered, from nan/recovered_steps
--          onsets            one row per step and rank: the first living entry, from nan/onsets
-- params:  none
-- returns: origin BIGINT, step BIGINT, rank BIGINT, seq BIGINT, kind VARCHAR, entry VARCHAR,
--          certainty VARCHAR, found VARCHAR[], slots VARCHAR[], dtype VARCHAR, phase VARCHAR,
--          name VARCHAR, api VARCHAR, module VARCHAR, instance VARCHAR,
--          members STRUCT(rank BIGINT, seq BIGINT, "call" VARCHAR)[], brought DOUBLE,
--          group_size BIGINT
WITH first_bad AS (
  SELECT min(step) AS step
  FROM onsets
  ANTI JOIN recovered_steps USING (step)
)
SELECT
  row_number() OVER (ORDER BY step, rank, seq, entry, instance) - 1 AS origin,
  *
FROM candidates
ANTI JOIN recovered_steps USING (step)
WHERE NOT (
  entry = 'import' AND kind IN ('parameter', 'optimizer')
  AND step > (SELECT f.step FROM first_bad AS f)
)
ORDER BY origin
