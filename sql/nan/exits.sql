-- nan/exits: one row per communication call by which a NaN or an infinity leaves its rank, and the
-- entry it came from.
--
-- Given for entries that do not live on their own rank, for which everything depends on where they
-- went, and, where lineage is on record, for those that live too. `entry_seq` is the call of the
-- entry; NULL stands for any communication call it was received by. A backward call that made one
-- of a finite gradient goes on from its forward call, if that held one: autograd had saved it.
--
-- scope:   rank
-- reads:   ways          one row per way by which a NaN or infinity lives on, from nan/ways
--          edges         one row per way of a NaN or infinity into a later call, from nan/edges
--          bad_tensors   one row per tensor read or made that holds one, from nan/bad_tensors
--          bad_calls     one row per call that reads or makes one, from nan/bad_calls
--          entries       one row per place where one came in, from nan/entries
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, entry_step BIGINT, entry_seq BIGINT,
--          received BOOLEAN
WITH RECURSIVE with_lineage AS (
  SELECT DISTINCT step, rank FROM bad_tensors WHERE value_id IS NOT NULL
),
starts AS (
  SELECT
    e.rank,
    e.step,
    e.seq,
    CASE WHEN e.entry = 'received' AND e.alive THEN NULL ELSE e.seq END AS entry_seq,
    e.entry = 'received' AS received
  FROM entries AS e
  LEFT JOIN with_lineage AS w USING (step, rank)
  WHERE NOT e.alive OR w.rank IS NOT NULL
),
onward AS (
  SELECT rank, producer_step, producer_seq, step, seq FROM ways
  UNION ALL
  SELECT rank, step, forward_seq, step, seq
  FROM entries
  WHERE forward_seq IS NOT NULL AND entry IN ('birth', 'turned')
),
way AS (
  SELECT rank, step, seq, step AS entry_step, entry_seq, received FROM starts
  UNION
  SELECT e.rank, e.step, e.seq, w.entry_step, w.entry_seq, w.received
  FROM way AS w
  JOIN onward AS e ON e.rank = w.rank AND e.producer_step = w.step AND e.producer_seq = w.seq
)
SELECT e.step, e.rank, e.seq, w.entry_step, w.entry_seq, w.received
FROM way AS w
JOIN edges AS e ON e.rank = w.rank AND e.producer_step = w.step AND e.producer_seq = w.seq
WHERE e.fate = 'sends'
UNION
SELECT s.step, s.rank, s.seq, s.step, s.entry_seq, false  -- read by the communication call itself
FROM starts AS s
JOIN bad_calls AS b USING (step, rank, seq)
WHERE b.kind = 'comm' AND b.reads_bad AND NOT s.received
ORDER BY ALL
