-- rl/named_samples: one row per sample of either side, with what it is joined by.
--
-- `name` is the group (uid, prompt, or batch), `key` the sample in it: its number where it has one,
-- else its response; `turn` tells equal ones apart. A row without a counted token is padding where
-- a fuller row of the same name and number stands on its side: batches are filled up by repetition.
--
-- scope:   run
-- reads:   samples   one row per sample of either side
-- params:  $match_by VARCHAR   ids, prompt, prompt_text or place
-- returns: side VARCHAR, part BIGINT, step BIGINT, rank BIGINT, micro BIGINT, place BIGINT,
--          uid VARCHAR, sample BIGINT, prompt UBIGINT, prompt_text UBIGINT, response UBIGINT,
--          response_text UBIGINT, tokens BIGINT, counted BIGINT, name VARCHAR, key VARCHAR,
--          numbered BOOLEAN, padding BOOLEAN, turn BIGINT, number BIGINT
WITH named AS (
  SELECT
    *,
    CASE $match_by
      WHEN 'ids' THEN uid
      WHEN 'prompt' THEN prompt::VARCHAR
      WHEN 'prompt_text' THEN prompt_text::VARCHAR
      ELSE rank || '/' || micro
    END AS name,
    CASE $match_by WHEN 'ids' THEN sample WHEN 'place' THEN place END AS known
  FROM samples
),
keyed AS (
  SELECT
    *,
    coalesce(known::VARCHAR, 'response ' || coalesce(response_text, response)) AS key,
    known IS NOT NULL AS numbered,
    coalesce(counted = 0, false)
      AND max(coalesce(counted, 0)) OVER (PARTITION BY side, step, name, known) > 0
      AND count(*) OVER (PARTITION BY side, step, name, known) > 1 AS padding
  FROM named
)
SELECT
  side, part, step, rank, micro, place, uid, sample, prompt, prompt_text, response, response_text,
  tokens, counted, name, key, numbered, padding,
  row_number() OVER (
    PARTITION BY side, step, name, key, padding ORDER BY rank, micro, place
  ) AS turn,
  coalesce(
    sample,
    row_number() OVER (
      PARTITION BY side, step, coalesce(uid, name), padding ORDER BY rank, micro, place
    ) - 1
  ) AS number
FROM keyed
