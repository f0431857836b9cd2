-- rl/array_rows: one row per value of A, as the sheet of its key shows it.
--
-- The first twelve columns are those of msprobe's SingleComparator; `first` is NULL where
-- everything is equal.
--
-- scope:   run
-- reads:   arrays   one row per value of A
-- params:  none
-- returns: key VARCHAR, name VARCHAR, step BIGINT, rank BIGINT, micro BIGINT, id BIGINT,
--          entry VARCHAR,
--          shape_1 VARCHAR, shape_2 VARCHAR, equal DOUBLE, first BIGINT, max_abs DOUBLE,
--          max_rel DOUBLE, within_3 DOUBLE, within_2 DOUBLE, nan_1 BIGINT, nan_2 BIGINT,
--          dtype_1 VARCHAR, dtype_2 VARCHAR
SELECT
  key,
  name,
  step,
  rank,
  micro,
  coalesce(try_cast(entry AS BIGINT), 0) AS id,
  entry,
  shape_1::VARCHAR AS shape_1,
  shape_2::VARCHAR AS shape_2,
  100.0 * equal / nullif(total, 0) AS equal,
  first,
  max_abs,
  max_rel,
  100.0 * within_3 / nullif(total, 0) AS within_3,
  100.0 * within_2 / nullif(total, 0) AS within_2,
  nan_1,
  nan_2,
  dtype_1,
  dtype_2
FROM arrays
ORDER BY key, step, rank, micro, entry
