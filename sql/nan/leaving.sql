-- nan/leaving: one row per call whose NaN or infinity goes on into a communication call.
--
-- Whether it lives then depends on the other ranks. Asked for ranks alone on which one came in by a
-- backward call: it may have come from its forward call.
--
-- scope:   rank
-- reads:   calls           one row per call
--          entry_tensors   one row per tensor in which one came in, from nan/entry_tensors
--          ways            one row per way by which a NaN or infinity lives on, from nan/ways
--          edges           one row per way of a NaN or infinity into a later call, from nan/edges
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT
WITH RECURSIVE asked AS (
  SELECT DISTINCT e.rank
  FROM entry_tensors AS e
  JOIN calls AS c USING (step, rank, seq)
  WHERE c.phase = 'backward'
),
leaving AS (
  SELECT producer_step AS step, rank, producer_seq AS seq
  FROM edges
  SEMI JOIN asked USING (rank)
  WHERE fate = 'sends'
  UNION
  SELECT w.producer_step, w.rank, w.producer_seq
  FROM leaving AS l
  JOIN ways AS w ON w.rank = l.rank AND w.step = l.step AND w.seq = l.seq
)
SELECT * FROM leaving
