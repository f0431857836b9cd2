-- rl/scalars: one row per 0-d key and step (and rank and micro step, where both sides hold the same
-- samples there) whose numbers differ by more than rounding.
--
-- A loss belongs to the samples of its micro batch: where the sides dealt them out otherwise, only
-- the sums of the step compare. Numbers near zero are sums of larger ones, so the usual size of the
-- key counts.
--
-- scope:   run
-- reads:   arrays   one row per value of A
-- params:  none
-- returns: key VARCHAR, step BIGINT, rank BIGINT, micro BIGINT, a DOUBLE, b DOUBLE, size DOUBLE,
--          cause VARCHAR
WITH scalars AS (
  SELECT
    key || CASE WHEN entry = '' THEN '' ELSE '.' || entry END AS key,
    step, rank, micro, same_samples, value_1 AS a, value_2 AS b, whole
  FROM arrays
  WHERE value_1 IS NOT NULL AND value_2 IS NOT NULL
),
steps AS (
  SELECT key, step, bool_and(same_samples) AS placed, sum(a) AS a, sum(b) AS b,
    bool_and(whole) AS whole
  FROM scalars
  GROUP BY key, step
),
sizes AS (
  SELECT key, sqrt(avg(least(a * a, b * b)) FILTER (isfinite(a) AND isfinite(b))) AS usual
  FROM scalars
  GROUP BY key
),
compared AS (
  SELECT s.key, s.step, s.rank, s.micro, s.a, s.b, s.whole
  FROM scalars AS s
  JOIN steps AS t USING (key, step)
  WHERE t.placed
  UNION ALL
  SELECT key, step, NULL, NULL, a, b, whole FROM steps WHERE NOT placed
)
SELECT
  key,
  step,
  rank,
  micro,
  a,
  b,
  greatest(abs(a), abs(b), coalesce(usual, 0)) AS size,
  CASE WHEN isfinite(a) AND isfinite(b) THEN 'values' ELSE 'nan' END AS cause
FROM compared
JOIN sizes USING (key)
WHERE isfinite(a) <> isfinite(b)
  OR (
    isfinite(a)
    AND isfinite(b)
    AND abs(a - b) > CASE
      WHEN whole THEN 0
      ELSE greatest(abs(a), abs(b), coalesce(usual, 0)) / 128 + 1e-9
    END
  )
ORDER BY key, step, rank, micro
