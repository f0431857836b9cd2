-- lib/size_of: the number of elements of a shape: 1 for a scalar, NULL when it is not known.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO size_of(shape) AS
  CASE WHEN len(shape) = 0 THEN 1 ELSE list_aggregate(shape, 'product')::BIGINT END
