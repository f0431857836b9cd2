-- schema/part_columns: one row per Parquet part, with what is equal for parts of the same columns.
--
-- scope:   rank
-- params:  $files VARCHAR[]   paths of the parts
-- returns: file VARCHAR, columns UBIGINT
SELECT file_name AS file, hash(list([name, duckdb_type] ORDER BY column_id)) AS columns
FROM parquet_schema($files)
GROUP BY file_name
