-- nan/consequences: one row per step and rank that began with weights an earlier step had spoilt.
--
-- `unseen`: nothing on record carried the bad value to this rank in the earlier step; a gradient
-- reduction that is not on record (DistributedDataParallel's own) must have.
--
-- scope:   run
-- reads:   entries           one row per call at which a bad value came in, from nan/entries
--          onsets            one row per step and rank: the first living entry, from nan/onsets
--          recovered_steps   one row per step that recovered, from nan/recovered_steps
--          origins           one row per origin on record, from nan/origins
--          spread            one row per origin and rank its value came to, from nan/spread
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, origin BIGINT, unseen BOOLEAN
WITH spoilt AS (
  SELECT n.step, n.rank, n.seq, e.name
  FROM onsets AS n
  JOIN entries AS e USING (step, rank, seq, entry)
  ANTI JOIN origins AS o USING (step, rank, seq, entry)
  ANTI JOIN recovered_steps AS r USING (step)
  WHERE n.entry IN ('import', 'carried')
)
SELECT
  p.step,
  p.rank,
  p.seq,
  p.name,
  arg_max(o.origin, (s.rank IS NOT NULL, o.step, -o.origin)) AS origin,
  NOT bool_or(s.rank IS NOT NULL OR x.rank IS NOT NULL) AS unseen
FROM spoilt AS p
JOIN (SELECT DISTINCT origin, step FROM spread) AS o ON o.step < p.step
LEFT JOIN spread AS s ON s.origin = o.origin AND s.rank = p.rank
LEFT JOIN onsets AS x ON x.rank = p.rank AND x.step >= o.step AND x.step < p.step
GROUP BY p.step, p.rank, p.seq, p.name
ORDER BY p.step, p.rank
