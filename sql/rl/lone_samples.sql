-- rl/lone_samples: one row per sample that has no partner, and why.
--
--   padding   no token of it counts: it fills a batch up
--   step      the other side has nothing at all of its step
--   missing   the other side has the step, but not the sample
--
-- scope:   run
-- reads:   named_samples   one row per sample of either side, from rl/named_samples
--          pairs   one row per sample that both sides hold, from rl/pairs
-- params:  none
-- returns: side VARCHAR, step BIGINT, rank BIGINT, micro BIGINT, place BIGINT, uid VARCHAR,
--          sample BIGINT, why VARCHAR
WITH joined AS (
  SELECT 'a' AS side, a_part AS part, a_micro AS micro, a_place AS place, padding FROM pairs
  UNION ALL
  SELECT 'b' AS side, b_part AS part, b_micro AS micro, b_place AS place, padding FROM pairs
),
steps AS (
  SELECT step FROM named_samples GROUP BY step HAVING count(DISTINCT side) = 2
)
SELECT
  s.side,
  s.step,
  s.rank,
  s.micro,
  s.place,
  s.uid,
  s.number AS sample,
  CASE
    WHEN s.padding OR j.padding OR s.counted = 0 THEN 'padding'
    WHEN s.step NOT IN (SELECT step FROM steps) THEN 'step'
    ELSE 'missing'
  END AS why
FROM named_samples AS s
LEFT JOIN joined AS j USING (side, part, micro, place)
WHERE j.part IS NULL OR j.padding
ORDER BY s.side, s.step, s.rank, s.micro, s.place
