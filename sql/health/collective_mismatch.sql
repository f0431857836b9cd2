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
WITH disagreeing AS (
  SELECT
    step,
    instance,
    CASE
      WHEN NOT bool_or(point_to_point) AND min(op) <> max(op) THEN 'operation'
      WHEN min(dtype) <> max(dtype) THEN 'dtype'
      ELSE 'shape'
    END AS what
  FROM (
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
  )
  GROUP BY step, instance
  HAVING (NOT bool_or(point_to_point) AND min(op) <> max(op))
    OR min(dtype) <> max(dtype)
    OR min(size) <> max(size)
)
SELECT
  d.step,
  d.instance,
  d.what,
  list(m.rank ORDER BY m.rank) AS ranks,
  list(m.name ORDER BY m.rank) AS calls,
  list(concat(m.dtype, coalesce(m.shape, m.fill_shape)::VARCHAR) ORDER BY m.rank) AS brought
FROM disagreeing AS d
JOIN members AS m USING (step, instance)
WHERE m.recorded
GROUP BY d.step, d.instance, d.what
ORDER BY d.step, d.instance
