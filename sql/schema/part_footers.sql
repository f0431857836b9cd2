-- schema/part_footers: one row per entry that crossrank wrote into the footer of a Parquet part.
--
-- A file that is no whole Parquet file is an error, which names it.
--
-- scope:   rank
-- params:  $files VARCHAR[]   paths of the parts
-- returns: file VARCHAR, entry VARCHAR, content VARCHAR
SELECT
  file_name AS file,
  decode(key)[11:] AS entry,
  decode(value) AS content
FROM parquet_kv_metadata($files)
WHERE starts_with(decode(key), 'crossrank.')
