-- rl/events: one row per step, cause and key with samples in which the two sides differ.
--
-- `stage` is the causal order inside of a step: samples (10), prompts (20), ids (30 where a rule
-- names why, else 34), masks (40), rewards (50), own log-probs (60), advantages (70), the rest
-- (80). Engine log-probs stand at 32: they cause other ids. Log-probs, which have KL sums, are
-- judged elsewhere, by their noise; here only for what is not finite.
--
-- What a model is given beside ids follows them: where these differ, or stand elsewhere, it is no
-- event of its own. Ids of one run that differ other than at an end were tokenised twice. A prompt
-- whose padding stands elsewhere is a fault only where attention does not fit it on one side.
--
-- scope:   run
-- reads:   pairs   one row per sample that both sides hold, from rl/pairs
--          pair_facts   one row per pair of samples
--          pair_values   one row per pair of samples and key
--          lone_samples   one row per sample that has no partner, from rl/lone_samples
-- params:  $one_run BOOLEAN   both sides speak of the very same samples
-- returns: step BIGINT, stage BIGINT, cause VARCHAR, key VARCHAR, ranks BIGINT[], samples BIGINT,
--          numbers BIGINT, max_abs DOUBLE, rank BIGINT, uid VARCHAR, sample BIGINT, token BIGINT
WITH known AS (
  SELECT p.*, f.* EXCLUDE (pair)
  FROM pairs AS p
  JOIN pair_facts AS f USING (pair)
  WHERE NOT p.padding
),
found AS (
  SELECT
    step, rank, 10 AS stage, 'missing_sample' AS cause, 'samples' AS key, 1 AS numbers,
    NULL AS pair, NULL AS token, NULL AS size, uid, sample
  FROM lone_samples
  WHERE why = 'missing'
  UNION ALL
  SELECT step, a_rank, 20, 'values', 'prompt_ids', 1, pair, NULL, NULL, uid, sample
  FROM known
  WHERE prompt_differs
  UNION ALL
  SELECT step, a_rank, 21, 'padding_side', 'prompt_ids', 1, pair, NULL, NULL, uid, sample
  FROM known
  WHERE prompt_moved AND fits_a <> fits_b
  UNION ALL
  SELECT step, a_rank, 22, 'mask', 'attention_mask', 1, pair, NULL, NULL, uid, sample
  FROM known
  WHERE NOT prompt_moved AND NOT prompt_differs AND fits_a <> fits_b
  UNION ALL
  SELECT
    step,
    a_rank,
    CASE WHEN prefix OR coalesce(same_text, $one_run) THEN 30 ELSE 34 END,
    CASE
      WHEN prefix THEN 'longer_response'
      WHEN coalesce(same_text, $one_run) THEN 'retokenised'
      ELSE 'values'
    END,
    'response_ids',
    abs(tokens_a - tokens_b),
    pair,
    first_difference,
    NULL,
    uid,
    sample
  FROM known
  WHERE first_difference IS NOT NULL AND NOT coalesce(prompt_differs, false)
  UNION ALL
  SELECT step, a_rank, 34, 'values', 'response_text', 1, pair, NULL, NULL, uid, sample
  FROM known
  WHERE NOT same_text AND first_difference IS NULL AND NOT coalesce(prompt_differs, false)
  UNION ALL
  SELECT
    step, a_rank, 40, 'mask', 'response_mask', mask_differs, pair, mask_first, NULL, uid, sample
  FROM known
  WHERE mask_differs > 0
  UNION ALL
  SELECT
    p.step,
    p.a_rank,
    CASE
      WHEN v.key = 'attention_mask' THEN 22
      WHEN v.key IN ('input_ids', 'position_ids') THEN 23
      WHEN v.key = 'rollout_log_prob' THEN 31
      WHEN v.key = 'reward' THEN 50
      WHEN v.sum_k3 IS NOT NULL THEN 60
      WHEN v.key IN ('advantages', 'returns', 'values', 'kl') THEN 70
      ELSE 80
    END,
    CASE
      WHEN v.nan_a <> v.nan_b THEN 'nan'
      WHEN v.key = 'reward' THEN 'reward'
      WHEN v.key = 'attention_mask' THEN 'mask'
      ELSE 'values'
    END,
    v.key,
    CASE WHEN v.nan_a <> v.nan_b THEN abs(v.nan_a - v.nan_b) ELSE v.off END,
    p.pair,
    v.max_token,
    v.max_abs,
    p.uid,
    p.sample
  FROM pair_values AS v
  JOIN known AS p USING (pair)
  WHERE (v.nan_a <> v.nan_b OR (v.off > 0 AND v.sum_k3 IS NULL))
    AND NOT (
      v.key IN ('attention_mask', 'input_ids', 'position_ids')
      AND coalesce(p.prompt_differs OR p.prompt_moved OR p.first_difference IS NOT NULL, false)
    )
)
SELECT
  step,
  stage::BIGINT AS stage,
  cause,
  key,
  list(DISTINCT rank ORDER BY rank) AS ranks,
  count(*) AS samples,
  sum(numbers)::BIGINT AS numbers,
  max(size) AS max_abs,
  arg_min(rank, coalesce(pair, 0)) AS rank,
  arg_min(uid, coalesce(pair, 0)) AS uid,
  arg_min(sample, coalesce(pair, 0)) AS sample,
  arg_min(token, coalesce(pair, 0)) AS token
FROM found
GROUP BY step, stage, cause, key
ORDER BY step, stage, cause, key
