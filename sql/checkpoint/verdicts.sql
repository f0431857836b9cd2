-- checkpoint/verdicts: one row per pair of tensors: what it is, and by how much.
--
-- `rounded` means that every element of one side is the other's, rounded to nearest even: a
-- checkpoint in half precision against its original. `beyond` counts the elements that are not. A
-- vocabulary's table may be padded with rows that mean nothing; where no file says how many they
-- are, rows count as padding that differ without a gap up to the end of the table and are no more
-- than a padded table can have. An output layer on one side only is `tied` where it is the
-- embedding of its own side. The cosine of two zero tensors is 1, of one it is not defined.
--
-- scope:   run
-- reads:   tensor_pairs  one row per pair of tensors
--          differences   one row per pair that was compared, from checkpoint/differences
-- params:  none
-- returns: pair BIGINT, kind VARCHAR, name VARCHAR, name_b VARCHAR, part VARCHAR, layer BIGINT,
--          dtype_a VARCHAR, dtype_b VARCHAR, shape BIGINT[], status VARCHAR, numel BIGINT,
--          unequal BIGINT, beyond BIGINT, bits_differ BOOLEAN, l2 DOUBLE, relative_l2 DOUBLE,
--          cos DOUBLE, scale DOUBLE, max_abs DOUBLE, max_rel DOUBLE, first_place BIGINT,
--          last_place BIGINT, nan_a BIGINT, nan_b BIGINT, inf_a BIGINT, inf_b BIGINT,
--          roundings BIGINT, padding BIGINT, assumed_padding BIGINT, note VARCHAR, error VARCHAR
WITH measured AS (
  SELECT
    p.*,
    d.* EXCLUDE (pair),
    len(p.shape) > 0
      AND d.unequal > 0
      AND p.padded > 0
      AND d.unequal_rows = p.shape[1] - d.first_place // (d.numel // p.shape[1])
      AND d.unequal_rows < p.padded AS tail
  FROM tensor_pairs AS p
  JOIN differences AS d USING (pair)
)
SELECT
  pair,
  kind,
  name,
  name_b,
  part,
  layer,
  dtype_a,
  dtype_b,
  shape,
  CASE
    WHEN error IS NOT NULL THEN 'incomparable'
    WHEN kind = 'tied' THEN CASE WHEN beyond = 0 THEN 'tied' ELSE otherwise END
    WHEN unequal = 0 AND dtype_a <> dtype_b THEN 'rounded'
    WHEN unequal = 0 AND padding > 0 THEN 'padding'
    WHEN unequal = 0 THEN 'equal'
    WHEN beyond = 0 OR roundings <> 0 THEN 'rounded'
    WHEN tail THEN 'padding'
    ELSE 'different'
  END AS status,
  numel,
  unequal,
  beyond,
  bits_differ,
  sqrt(dd) AS l2,
  CASE WHEN aa > 0 THEN sqrt(dd / aa) WHEN dd > 0 THEN 'inf'::DOUBLE ELSE 0 END AS relative_l2,
  CASE
    WHEN aa = 0 AND bb = 0 THEN 1
    WHEN aa > 0 AND bb > 0 THEN least(1, greatest(-1, (aa + bb - dd) / (2 * aa) * sqrt(aa / bb)))
  END AS cos,
  CASE WHEN aa > 0 THEN (aa + bb - dd) / (2 * aa) END AS scale,
  max_abs,
  max_rel,
  first_place,
  last_place,
  nan_a,
  nan_b,
  inf_a,
  inf_b,
  roundings,
  padding,
  CASE WHEN tail AND roundings = 0 THEN unequal_rows ELSE 0 END AS assumed_padding,
  note,
  error
FROM measured
ORDER BY pair
