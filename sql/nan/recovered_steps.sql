-- nan/recovered_steps: one row per step whose bad values were a loss scale that was too high, and
-- passed.
--
-- Everything bad began in the gradients: a backward call or a reduction after it overflowed in
-- float16, or a backward call was handed an infinity that nothing on record made. The optimizer
-- then skipped the update, or the next step would have begun with bad weights; it was read, and is
-- finite. As long as no such step follows, nothing has recovered.
--
-- scope:   run
-- reads:   candidates   one row per place where a living NaN or infinity began, from nan/candidates
--          onsets       one row per step and rank: the first living entry, from nan/onsets
--          shards       one row per step and rank on record, from health/shards
-- params:  none
-- returns: step BIGINT, recovered_at BIGINT
WITH steps AS (
  SELECT step, max(judged) > 0 AS known FROM shards GROUP BY step
),
begun AS (
  SELECT
    step,
    bool_and(
      coalesce(phase = 'backward', false)
      AND CASE entry
        WHEN 'import' THEN list_has_any(found, ['inf', '-inf'])
        ELSE coalesce(dtype = 'float16', false)
      END
    ) AS scaled
  FROM candidates
  GROUP BY step
),
judged AS (
  SELECT
    s.step,
    coalesce(b.scaled, false) AS scaled,
    s.known AND NOT coalesce(o.bad, false) AS finite
  FROM steps AS s
  LEFT JOIN begun AS b USING (step)
  LEFT JOIN (SELECT DISTINCT step, true AS bad FROM onsets) AS o USING (step)
),
followed AS (  -- the next step that is not another overflow
  SELECT
    step,
    scaled,
    min(CASE WHEN NOT scaled THEN step END) OVER (
      ORDER BY step ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
    ) AS next_step
  FROM judged
)
SELECT f.step, f.next_step AS recovered_at
FROM followed AS f
JOIN judged AS n ON n.step = f.next_step
WHERE f.scaled AND n.finite
