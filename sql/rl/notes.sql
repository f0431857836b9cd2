-- rl/notes: one row per key and kind of note: what looks odd and is no difference.
--
--   nonfinite_masked   NaN or infinities where nothing counts
--   nonfinite          on both sides alike, where it counts
--   layout             padding stands elsewhere, and attention fits it
--   length_mismatch    a list whose length is not that of the ids; its sample was not compared
--   text_differs       a text beside prompt and response: the id of a request may, an answer not
--
-- scope:   run
-- reads:   pairs   one row per sample that both sides hold, from rl/pairs
--          pair_values   one row per pair of samples and key
--          pair_facts   one row per pair of samples
--          arrays   one row per value of A
-- params:  none
-- returns: code VARCHAR, key VARCHAR, side VARCHAR, step BIGINT, rank BIGINT, uid VARCHAR,
--          sample BIGINT, samples BIGINT, numbers BIGINT
WITH odd AS (
  SELECT 'nonfinite_masked' AS code, key, 'a' AS side, pair, hidden_a AS numbers FROM pair_values
  UNION ALL
  SELECT 'nonfinite_masked', key, 'b', pair, hidden_b FROM pair_values
  UNION ALL
  SELECT 'nonfinite', key, 'both', pair, nan_a FROM pair_values WHERE nan_a = nan_b
  UNION ALL
  SELECT 'length_mismatch', key, 'a', pair, length_a FROM pair_values
  UNION ALL
  SELECT 'length_mismatch', key, 'b', pair, length_b FROM pair_values
  UNION ALL
  SELECT 'layout', 'prompt_ids', 'both', pair, 1
  FROM pair_facts
  WHERE prompt_moved AND fits_a IS NOT DISTINCT FROM fits_b
)
SELECT
  o.code,
  o.key,
  o.side,
  arg_min(p.step, p.pair) AS step,
  arg_min(p.a_rank, p.pair) AS rank,
  arg_min(p.uid, p.pair) AS uid,
  arg_min(p.sample, p.pair) AS sample,
  count(*) AS samples,
  sum(o.numbers)::BIGINT AS numbers
FROM odd AS o
JOIN pairs AS p USING (pair)
WHERE o.numbers > 0 OR (o.code = 'length_mismatch' AND o.numbers IS NOT NULL)
GROUP BY o.code, o.key, o.side
UNION ALL
SELECT
  'text_differs',
  key,
  'both',
  arg_min(step, (step, rank)),
  arg_min(rank, (step, rank)),
  NULL,
  NULL,
  sum(total - equal)::BIGINT,
  sum(total - equal)::BIGINT
FROM arrays
WHERE dtype_1 = 'text'
  AND dtype_2 = 'text'
  AND of_samples
  AND equal < total
  AND key NOT IN ('uid', 'prompt_text', 'response_text')
GROUP BY key
ORDER BY ALL
