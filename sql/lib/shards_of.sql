-- lib/shards_of: into how many parts lib/sharding says that a tensor is cut; NULL for no sharding.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO shards_of(sharding) AS
  CASE
    WHEN sharding IS NOT NULL THEN coalesce(
      list_aggregate(regexp_extract_all(sharding, 'S\d+/(\d+)', 1)::BIGINT[], 'product'), 1
    )::BIGINT
  END
