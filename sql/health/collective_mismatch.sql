-- health/collective_mismatch: one row per communication instance whose members disagree about it.
--
-- `what` is the first of operation, dtype, shape that differs. Shapes are compared where all
-- members must bring the same one; a send and its receive must agree in dtype and size.
--
-- scope:   run
-- uses:    lib/size_of
-- reads:   members   one row per communication instance and rank, from comm/members
-- params:  none
-- returns: step BIGINT, instance VARCHAR, what VARCHAR, ranks BIGINT[], calls VARCHAR[],
--          brought VARCHAR[]
WITH brought AS (
  SELECT
    *,
    CASE api
      WHEN '_all_gather_base' THEN 'all_gather_into_tensor'
      WHEN '_reduce_scatter_base' THEN 'reduce_scatter_tensor'
      ELSE api
    END AS op,
    CASE
      WHEN point_to_point THEN size_of(coalesce(shape, fill_shape))::VARCHAR
      WHEN api = 'broadcast' THEN fill_shape::VARCHAR
      WHEN api IN (
          'all_reduce', 'reduce', 'all_gather_into_tensor', '_all_gather_base',
          'reduce_scatter_tensor', '_reduce_scatter_base'
        ) THEN shape::VARCHAR
    END AS size
  FROM members
  WHERE recorded
),
disagreeing AS (
  SELECT
    step,
    instance,
    CASE
      WHEN NOT bool_or(point_to_point) AND min(op) <> max(op) THEN 'operation'
      WHEN min(dtype) <> max(dtype) THEN 'dtype'
      ELSE 'shape'
    END AS what
  FROM brought
  GROUP BY step, instance
  HAVING (NOT bool_or(point_to_point) AND min(op) <> max(op))
    OR min(dtype) <> max(dtype)
    OR min(size) <> max(size)
)
SELECT
  d.step,
  d.instance,
  d.what,
  list(b.rank ORDER BY b.rank) AS ranks,
  list(b.name ORDER BY b.rank) AS calls,
  list(concat(b.dtype, coalesce(b.shape, b.fill_shape)::VARCHAR) ORDER BY b.rank) AS brought
FROM disagreeing AS d
JOIN brought AS b USING (step, instance)
GROUP BY d.step, d.instance, d.what
ORDER BY d.step, d.instance
