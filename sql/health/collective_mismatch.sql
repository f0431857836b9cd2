-- health/collective_mismatch: one row per communication instance whose members disagree about it.
--
-- `what` is the first of operation, dtype, shape that differs. Shapes are compared where all
-- members must bring the same one; a send and its receive must agree in dtype and size.
--
-- scope:   run
-- reads:   members   one row per communication instance and rank, from comm/members
-- params:  none
-- returns: step BIGINT, instance VARCHAR, what VARCHAR, ranks BIGINT[], calls VARCHAR[],
--          brought VARCHAR[]
WITH brought AS (
  SELECT
    *,
    CASE
      WHEN point_to_point THEN ''
      ELSE trim(replace(api, '_base', '_into_tensor'), '_')
    END AS op,
    CASE
      WHEN point_to_point THEN list_aggregate(coalesce(shape, fill_shape), 'product')::VARCHAR
      WHEN api IN ('all_reduce', 'reduce') THEN shape::VARCHAR
      WHEN api = 'broadcast' THEN fill_shape::VARCHAR
    END AS size
  FROM members
  WHERE recorded
),
disagreeing AS (
  SELECT
    step,
    instance,
    CASE
      WHEN count(DISTINCT op) > 1 THEN 'operation'
      WHEN count(DISTINCT dtype) > 1 THEN 'dtype'
      WHEN count(DISTINCT size) > 1 THEN 'shape'
    END AS what,
    list(rank ORDER BY rank) AS ranks,
    list(name ORDER BY rank) AS calls,
    list(concat(dtype, coalesce(shape, fill_shape)::VARCHAR) ORDER BY rank) AS brought
  FROM brought
  GROUP BY step, instance
)
SELECT step, instance, what, ranks, calls, brought
FROM disagreeing
WHERE what IS NOT NULL
ORDER BY step, instance
