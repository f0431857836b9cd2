-- nan/local_origins: one row per place where a living NaN or infinity began on a rank itself.
--
-- By lineage: every living entry that was not received, not carried over from an earlier step and,
-- for a backward call, not already in its forward. By order, where lineage is not on record: the
-- first living entry of the rank in the step, if it was not received. Several weights, or several
-- inputs, that came in bad on one rank and step are one origin.
--
-- scope:   run
-- reads:   entries          one row per place where a NaN or infinity came into a rank's record,
--                           from nan/entries
--          living           one row per entry that did not die out, from nan/living
--          onsets           one row per step and rank: the first living entry, from nan/onsets
--          shards           one row per step and rank on record, from health/shards
--          weight_updates   one row per entry that tells of an optimizer's update, from
--                           nan/weight_updates
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, entry VARCHAR, kind VARCHAR, certainty VARCHAR,
--          slots VARCHAR[], found VARCHAR[], dtype VARCHAR, weight BOOLEAN, name VARCHAR,
--          api VARCHAR, phase VARCHAR, module VARCHAR
SELECT
  e.step,
  e.rank,
  e.seq,
  e.entry,
  CASE e.entry
    WHEN 'saved' THEN 'input'
    WHEN 'lost' THEN CASE WHEN u.manner = 'between' THEN 'optimizer' ELSE 'gap' END
    WHEN 'uninitialized' THEN 'uninitialized'
    WHEN 'import' THEN
      CASE
        WHEN NOT e.weight THEN 'input'
        WHEN u.manner = 'between' THEN 'optimizer'
        ELSE 'parameter'
      END
    ELSE
      CASE
        WHEN e.phase = 'optimizer' OR u.manner = 'in_place' THEN 'optimizer'
        ELSE 'compute'
      END
  END AS kind,
  -- what made an import may stand in the part of the record that is lost
  CASE
    WHEN s.lineage AND NOT (e.entry = 'import' AND coalesce(s.damage, '') <> '') THEN 'lineage'
    ELSE 'order'
  END AS certainty,
  e.slots,
  e.found,
  e.dtype,
  e.weight,
  e.name,
  e.api,
  e.phase,
  e.module
FROM entries AS e
JOIN living AS l USING (step, rank, seq, entry)
JOIN onsets AS o ON o.step = e.step AND o.rank = e.rank
JOIN shards AS s ON s.step = e.step AND s.rank = e.rank
LEFT JOIN weight_updates AS u
  ON u.step = e.step AND u.rank = e.rank AND u.seq = e.seq AND u.entry = e.entry
WHERE e.entry NOT IN ('received', 'carried')
  AND CASE
    WHEN s.lineage THEN e.forward_seq IS NULL
    ELSE o.seq = e.seq AND o.entry = e.entry
  END
QUALIFY (e.entry <> 'import' AND NOT (e.entry = 'lost' AND u.manner IS NOT DISTINCT FROM 'between'))
  OR row_number() OVER (
    PARTITION BY e.step, e.rank, e.entry, e.weight, e.entry = 'lost' AND u.manner IS NULL
    ORDER BY e.seq
  ) = 1
