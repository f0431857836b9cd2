-- rl/mask_shapes: one row: what is common to all samples whose response masks differ.
--
-- A mask that was moved by one comes from labels that were shifted once too often; one that counts
-- every real token was taken from attention, and counts what tools wrote.
--
-- scope:   run
-- reads:   pair_facts   one row per pair of samples
-- params:  none
-- returns: samples BIGINT, shifted BIGINT, shift BIGINT, a_counts_all BIGINT, b_counts_all BIGINT
SELECT
  count(*) AS samples,
  count(*) FILTER (mask_shift <> 0) AS shifted,
  mode(mask_shift) AS shift,
  count(*) FILTER (mask_a_all AND NOT mask_b_all) AS a_counts_all,
  count(*) FILTER (mask_b_all AND NOT mask_a_all) AS b_counts_all
FROM pair_facts
WHERE mask_differs > 0
ORDER BY samples
