-- rl/identities: one row: what tells samples of the two sides apart, and how many of them it joins.
--
-- Ids of a run are of use only if the other run has them too: verl makes a new uid for each prompt
-- of each run. Prompts repeat, so where rows stand at the same places with the same prompts, places
-- tell more.
--
-- scope:   run
-- reads:   samples   one row per sample of either side
-- params:  none
-- returns: by_ids BIGINT, by_prompt BIGINT, by_text BIGINT, by_place BIGINT, same_prompt BIGINT,
--          other_prompt BIGINT, tokens BIGINT
WITH a AS (
  SELECT * FROM samples WHERE side = 'a'
),
b AS (
  SELECT * FROM samples WHERE side = 'b'
),
places AS (
  SELECT
    coalesce(a.prompt = b.prompt, a.prompt_text = b.prompt_text) AS same
  FROM a
  JOIN b USING (step, rank, micro, place)
)
SELECT
  (SELECT count(*) FROM a SEMI JOIN b USING (step, uid)) AS by_ids,
  (SELECT count(*) FROM a SEMI JOIN b USING (step, prompt)) AS by_prompt,
  (SELECT count(*) FROM a SEMI JOIN b USING (step, prompt_text)) AS by_text,
  (SELECT count(*) FROM places) AS by_place,
  (SELECT count(*) FROM places WHERE same) AS same_prompt,
  (SELECT count(*) FROM places WHERE NOT same) AS other_prompt,
  (SELECT coalesce(sum(coalesce(counted, tokens)), 0)::BIGINT FROM a) AS tokens
ORDER BY by_ids
