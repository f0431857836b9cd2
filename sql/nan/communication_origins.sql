-- nan/communication_origins: one row per rank that got a NaN or an infinity out of a communication
-- instance of which every member is on record and brought finite values only.
--
-- `overflows`: the operation adds or multiplies, and the magnitudes brought can leave the dtype's
-- range. If not, somebody brought what is not on record: a copy does not overflow. Where no lineage
-- is on record, an instance has rows only if some rank's first living bad value came out of it.
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
--          dtype VARCHAR, overflows BOOLEAN, brought DOUBLE, group_size BIGINT,
--          in_backward BOOLEAN, certainty VARCHAR, found VARCHAR[], slots VARCHAR[]
WITH begun AS (  -- instances into which nobody is known to have brought it
  SELECT h.step, h.instance, bool_or(o.rank IS NOT NULL) AS first_here
  FROM handovers AS h
  LEFT JOIN onsets AS o
    ON o.step = h.step AND o.rank = h.rank AND o.seq = h.seq AND o.entry = 'received' AND h.gets
  GROUP BY h.step, h.instance
  HAVING NOT bool_or(h.gives OR h.may_give)
),
summed AS (
  SELECT
    m.step,
    m.instance,
    bool_or(b.first_here) AS first_here,
    sum(m.read_max) FILTER (WHERE m.reads) AS brought,
    bool_or(m.reads AND m.read_max IS NULL) AS unknown,
    count(*) AS group_size
  FROM begun AS b
  JOIN members AS m USING (step, instance)
  GROUP BY m.step, m.instance
  HAVING bool_and(m.recorded)
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
      OR m.reduce_op IN ('PRODUCT', 'PROD')
      OR coalesce(s.brought >= dtype_limit(m.dtype), true)
    ) AS overflows,
  s.brought,
  s.group_size,
  m.in_backward,
  CASE WHEN d.lineage THEN 'lineage' ELSE 'order' END AS certainty,
  e.found,
  e.slots
FROM summed AS s
JOIN handovers AS h USING (step, instance)
JOIN members AS m ON m.step = h.step AND m.instance = h.instance AND m.rank = h.rank
JOIN shards AS d ON d.step = h.step AND d.rank = h.rank
JOIN entries AS e
  ON e.step = h.step AND e.rank = h.rank AND e.seq = h.seq AND e.entry = 'received'
JOIN living AS l ON l.step = h.step AND l.rank = h.rank AND l.seq = h.seq AND l.entry = 'received'
WHERE h.gets AND (d.lineage OR s.first_here)
