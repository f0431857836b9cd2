-- nan/living: one row per entry of a NaN or an infinity that did not die out on any rank it went
-- to.
--
-- An entry lives when it leads to a loose end on its own rank, or when it left by a communication
-- call and what that handed over lives on another rank, or went to a rank that left no record of
-- it. A receive whose record was made too early lives when a read of its size does.
--
-- scope:   run
-- reads:   entries     one row per place where a NaN or infinity came into a rank's record, from
--                      nan/entries
--          exits       one row per communication call it left by and the entry, from nan/exits
--          handovers   one row per rank of an instance it went through, from nan/handovers
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, entry VARCHAR
WITH RECURSIVE received_late AS (
  SELECT DISTINCT h.step, h.rank, h.seq
  FROM handovers AS h
  JOIN entries AS e ON e.step = h.step AND e.rank = h.rank AND e.numel = h.numel AND e.seq > h.seq
  WHERE h.stale AND e.entry = 'import' AND e.alive
),
gone AS MATERIALIZED (  -- by an exit, into an instance
  SELECT DISTINCT x.entry_step AS step, x.rank, x.entry_seq AS seq, h.step AS exit_step, h.instance
  FROM exits AS x
  JOIN handovers AS h ON h.step = x.step AND h.rank = x.rank AND h.seq = x.seq AND h.gives
  WHERE x.entry_seq IS NOT NULL
),
out_of_sight AS (
  SELECT DISTINCT g.step, g.rank, g.seq
  FROM gone AS g
  JOIN handovers AS h ON h.step = g.exit_step AND h.instance = g.instance
  WHERE NOT h.recorded
),
known AS (
  SELECT step, rank, seq FROM entries WHERE alive
  UNION
  SELECT step, rank, seq FROM received_late
  UNION
  SELECT step, rank, seq FROM out_of_sight
),
onward AS MATERIALIZED (  -- from an instance into those that a value it handed over went into
  SELECT DISTINCT h.step, h.instance, g.exit_step, g.instance AS exit_instance
  FROM gone AS g
  JOIN handovers AS h ON h.step = g.step AND h.rank = g.rank AND h.seq = g.seq
  WHERE h.gets
),
living_instances AS (
  SELECT DISTINCT h.step, h.instance
  FROM known AS k
  JOIN handovers AS h USING (step, rank, seq)
  WHERE h.gets
  UNION
  SELECT o.step, o.instance
  FROM living_instances AS l
  JOIN onward AS o ON o.exit_step = l.step AND o.exit_instance = l.instance
),
living AS (
  SELECT step, rank, seq FROM known
  UNION
  SELECT g.step, g.rank, g.seq
  FROM gone AS g
  JOIN living_instances AS l ON l.step = g.exit_step AND l.instance = g.instance
)
SELECT l.step, l.rank, l.seq, coalesce(e.entry, 'received') AS entry
FROM living AS l
LEFT JOIN entries AS e USING (step, rank, seq)
