-- rl/uncompared: one row per key that both sides have, and of which nothing could be compared.
--
-- `mixed`: it is text on one side and numbers on the other; else it belongs to samples on one side
-- alone, or stands at other places.
--
-- scope:   run
-- reads:   side_keys   one row per key, with the sides that have it, from rl/side_keys
--          arrays   one row per value of A
-- params:  none
-- returns: key VARCHAR, mixed BOOLEAN
WITH compared AS (
  SELECT key, bool_and((dtype_1 = 'text') <> (dtype_2 = 'text')) AS mixed
  FROM arrays
  GROUP BY key
)
SELECT s.key, coalesce(c.mixed, false) AS mixed
FROM side_keys AS s
LEFT JOIN compared AS c USING (key)
WHERE s.in_a
  AND s.in_b
  AND (c.key IS NULL OR c.mixed)
  AND s.key NOT IN ('uid', 'sample_index')
ORDER BY s.key
