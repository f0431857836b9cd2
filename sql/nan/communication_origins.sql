-- nan/communication_origins: one row per rank that got a NaN or an infinity out of a communication
-- instance of which every member is on record and brought finite values only.
--
-- `overflows`: the operation adds, and the magnitudes brought can leave the dtype's range. If not,
-- somebody brought what is not on record: a copy does not overflow.
--
-- scope:   run
-- uses:    lib/dtype_limit
-- reads:   members     one row per communication instance and rank, from comm/members
--          handovers   one row per rank of an instance a bad value went through, from nan/handovers
--          onsets      one row per step and rank: the first living entry, from nan/onsets
--          living      one row per entry that did not die out, from nan/living
--          entries     one row per call at which a bad value came in, from nan/entries
--          shards      one row per step and rank on record, from health/shards
-- params:  none
-- returns: step BIGINT, instance VARCHAR, rank BIGINT, seq BIGINT, name VARCHAR, api VARCHAR,
--          dtype VARCHAR, overflows BOOLEAN, brought DOUBLE, group_size BIGINT, certainty VARCHAR,
--          found VARCHAR[], slots VARCHAR[]
WITH summed AS (
  SELECT
    step,
    instance,
    bool_and(recorded) AS whole,
    bool_or(read_bad) AS brought_bad,
    sum(read_max) FILTER (WHERE reads) AS brought,
    bool_or(reads AND read_max IS NULL) AS unknown,
    count(*) AS group_size
  FROM members
  GROUP BY step, instance
)
SELECT
  m.step,
  m.instance,
  m.rank,
  m.seq,
  m.name,
  m.api,
  m.dtype,
  m.api LIKE '%reduce%'
    AND coalesce(m.reduce_op, 'SUM') NOT IN ('MAX', 'MIN', 'BAND', 'BOR', 'BXOR')
    AND (
      s.unknown
      OR m.reduce_op = 'PRODUCT'
      OR coalesce(s.brought >= dtype_limit(m.dtype), true)
    ) AS overflows,
  s.brought,
  s.group_size,
  CASE WHEN d.lineage THEN 'lineage' ELSE 'order' END AS certainty,
  e.found,
  e.slots
FROM handovers AS h
JOIN members AS m USING (step, instance, rank)
JOIN summed AS s USING (step, instance)
JOIN shards AS d ON d.step = h.step AND d.rank = h.rank
JOIN entries AS e
  ON e.step = h.step AND e.rank = h.rank AND e.seq = h.seq AND e.entry = 'received'
JOIN living AS l ON l.step = h.step AND l.rank = h.rank AND l.seq = h.seq AND l.entry = 'received'
WHERE h.gets AND s.whole AND NOT s.brought_bad
  AND (
    d.lineage
    OR EXISTS (
      SELECT 1
      FROM handovers AS x
      JOIN onsets AS o ON o.step = x.step AND o.rank = x.rank AND o.seq = x.seq
      WHERE x.step = h.step AND x.instance = h.instance AND x.gets AND o.entry = 'received'
    )
  )
ORDER BY m.step, m.instance, m.rank
