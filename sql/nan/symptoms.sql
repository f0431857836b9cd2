-- nan/symptoms: one row per step and rank that holds a NaN or an infinity that lives: its first
-- symptom.
--
-- Steps that recovered from a loss scale that was too high are left out.
--
-- scope:   run
-- reads:   onsets            one row per step and rank: the first living entry, from nan/onsets
--          origins           one row per origin on record, from nan/origins
--          entries           one row per call at which a NaN or infinity came in, from nan/entries
--          handovers         one row per rank of an instance one went through, from nan/handovers
--          recovered_steps   one row per step that recovered, from nan/recovered_steps
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR
SELECT o.step, o.rank, o.seq, any_value(coalesce(e.name, h.name)) AS name
FROM onsets AS o
ANTI JOIN recovered_steps AS r USING (step)
LEFT JOIN entries AS e USING (step, rank, seq, entry)
LEFT JOIN handovers AS h ON h.step = o.step AND h.rank = o.rank AND h.seq = o.seq
GROUP BY o.step, o.rank, o.seq
UNION
SELECT step, rank, seq, name
FROM origins
WHERE entry = 'saturated'
ORDER BY step, rank
