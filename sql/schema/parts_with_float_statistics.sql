-- schema/parts_with_float_statistics: one row per Parquet file with minimum and maximum of a float
-- column.
--
-- DuckDB 2.0.1 skips NaN rows of such a file: they must be read with care. Half floats stand in a
-- file as values of a fixed length, as decimals do; care costs those little.
--
-- scope:   rank
-- params:  $files VARCHAR[]   paths of the parts
-- returns: file VARCHAR
SELECT DISTINCT file_name AS file
FROM parquet_metadata($files)
WHERE type IN ('FLOAT', 'DOUBLE', 'FIXED_LEN_BYTE_ARRAY')
  AND coalesce(stats_min_value, stats_min) IS NOT NULL
