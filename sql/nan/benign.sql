-- nan/benign: one row per entry of a NaN or an infinity that is no fault, with the reason.
--
-- scope:   run
-- reads:   entries           one row per call at which a NaN or infinity came in, from nan/entries
--          living            one row per entry that did not die out, from nan/living
--          onsets            one row per step and rank: the first living entry, from nan/onsets
--          recovered_steps   one row per step that recovered from a loss scale, from
--                            nan/recovered_steps
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, found VARCHAR[], reason VARCHAR
SELECT
  e.step,
  e.rank,
  e.seq,
  e.name,
  e.found,
  CASE
    WHEN e.given THEN 'asked for by an infinite argument; every way onward ends in finite results'
    ELSE 'died out: every way onward ends in finite results, or nothing uses it'
  END AS reason
FROM entries AS e
ANTI JOIN living AS l USING (step, rank, seq, entry)
WHERE e.entry <> 'received'
  AND NOT (e.entry = 'birth' AND e.forward_seq IS NOT NULL)  -- it came with the saved value
UNION ALL
SELECT
  o.step,
  o.rank,
  o.seq,
  e.name,
  e.found,
  concat('loss scale too high: the update was skipped, step ', r.recovered_at, ' is finite')
FROM recovered_steps AS r
JOIN onsets AS o USING (step)
JOIN entries AS e USING (step, rank, seq, entry)
ORDER BY step, rank, seq, name, reason
