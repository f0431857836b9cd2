-- rl/named_samples: one row per sample of either side, with what it is joined by.
--
-- `name` is the group (uid or prompt; the batch, where a sample has none), `key` the sample in it:
-- its number where it has one, else its response; `turn` tells equal ones apart. A row without a
-- counted token is padding where a fuller row of the same name and number stands on its side:
-- batches are filled up by repetition.
--
-- scope:   run
-- reads:   samples   one row per sample of either side
-- params:  $match_by VARCHAR   ids, prompt, prompt_text or place
-- returns: side VARCHAR, part BIGINT, step BIGINT, rank BIGINT, micro BIGINT, place BIGINT,
--          uid VARCHAR, sample BIGINT, prompt UBIGINT, prompt_text UBIGINT, response UBIGINT,
--          response_text UBIGINT, tokens BIGINT, counted BIGINT, name VARCHAR, key VARCHAR,
--          numbered BOOLEAN, padding BOOLEAN, turn BIGINT, number BIGINT
WITH own AS (
  SELECT
    *,
    CASE $match_by
      WHEN 'ids' THEN uid
      WHEN 'prompt' THEN prompt::VARCHAR
      WHEN 'prompt_text' THEN prompt_text::VARCHAR
    END AS own_name
  FROM samples
),
named AS (
  SELECT
    * EXCLUDE (own_name),
    coalesce(own_name, rank || '/' || micro) AS name,
    CASE WHEN own_name IS NULL THEN place WHEN $match_by = 'ids' THEN sample END AS known
  FROM own
),
filled_up AS (
  SELECT side, step, name, known
  FROM named
  GROUP BY ALL
  HAVING count(*) > 1 AND min(counted) = 0 AND max(counted) > 0
),
keyed AS (
  SELECT
    named.*,
    coalesce(named.known::VARCHAR, 'response ' || coalesce(response_text, response)) AS key,
    named.known IS NOT NULL AS numbered,
    coalesce(counted = 0, false) AND (filled_up.side IS NOT NULL) AS padding
  FROM named
  LEFT JOIN filled_up
    ON named.side = filled_up.side
    AND named.step = filled_up.step
    AND named.name = filled_up.name
    AND named.known IS NOT DISTINCT FROM filled_up.known
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
