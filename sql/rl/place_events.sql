-- rl/place_events: one row per step and key of values that are no list of samples and differ by
-- more than rounding, or in shape or dtype. Whole numbers are not rounded. Of lists of samples only
-- the shape is looked at, where it is no padding.
--
-- scope:   run
-- reads:   arrays   one row per value of A
-- params:  none
-- returns: step BIGINT, key VARCHAR, cause VARCHAR, ranks BIGINT[], numbers BIGINT,
--          max_abs DOUBLE, shape_1 VARCHAR, shape_2 VARCHAR, dtypes VARCHAR
WITH closeness AS (
  SELECT
    *,
    CASE WHEN whole THEN equal ELSE within_2 END AS close
  FROM arrays
  WHERE value_1 IS NULL
),
judged AS (
  SELECT
    *,
    CASE
      WHEN misfit OR (NOT of_samples AND shape_1 <> shape_2) THEN 'shape'
      WHEN NOT of_samples AND nan_1 <> nan_2 THEN 'nan'
      WHEN NOT of_samples AND close < total THEN 'values'
      WHEN dtype_1 <> dtype_2 AND max_rel > 1e-4 AND within_2 = total THEN 'dtype'
    END AS cause
  FROM closeness
)
SELECT
  step,
  key,
  cause,
  list(DISTINCT rank ORDER BY rank) AS ranks,
  sum(total - close)::BIGINT AS numbers,
  max(max_abs) AS max_abs,
  any_value(shape_1::VARCHAR) AS shape_1,
  any_value(shape_2::VARCHAR) AS shape_2,
  any_value(dtype_1 || ' against ' || dtype_2) AS dtypes
FROM judged
WHERE cause IS NOT NULL
GROUP BY step, key, cause
ORDER BY step, key, cause
