-- nan/recovered_steps: one row per step whose bad values were a loss scale that was too high, and
-- passed.
--
-- Everything bad began in float16 gradients: a backward call overflowed, or was handed an infinity
-- that nothing on record made. The optimizer then skipped the update, or the next step would have
-- begun with bad weights; it is finite. As long as no finite step follows, nothing has recovered.
--
-- scope:   run
-- reads:   candidates   one row per place where a living NaN or infinity began, from nan/candidates
--          onsets       one row per step and rank: the first living entry, from nan/onsets
--          shards       one row per step and rank on record, from health/shards
-- params:  none
-- returns: step BIGINT, recovered_at BIGINT
WITH steps AS (
  SELECT
    s.step,
    bool_or(o.rank IS NOT NULL) AS bad,
    bool_or(c.scaled IS NOT NULL) AND bool_and(coalesce(c.scaled, true)) AS scaled
  FROM (SELECT DISTINCT step FROM shards) AS s
  LEFT JOIN onsets AS o USING (step)
  LEFT JOIN (
    SELECT
      step,
      (phase = 'backward' AND entry = 'import')
        OR (dtype = 'float16' AND (phase = 'backward' OR entry = 'received')) AS scaled
    FROM candidates
  ) AS c USING (step)
  GROUP BY s.step
),
runs AS (  -- the next step that is not another overflow
  SELECT
    step,
    scaled,
    min(CASE WHEN NOT scaled THEN step END) OVER (
      ORDER BY step ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
    ) AS next_step
  FROM steps
)
SELECT r.step, r.next_step AS recovered_at
FROM runs AS r
JOIN steps AS n ON n.step = r.next_step
WHERE r.scaled AND NOT n.bad
ORDER BY r.step
