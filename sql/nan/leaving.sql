-- nan/leaving: one row per call whose NaN or infinity goes on into a communication call.
--
-- Whether it lives then depends on the other ranks.
--
-- scope:   rank
-- reads:   ways    one row per way by which a NaN or infinity lives on, from nan/ways
--          edges   one row per way of a NaN or infinity into a later call, from nan/edges
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT
WITH RECURSIVE leaving AS (
  SELECT producer_step AS step, rank, producer_seq AS seq FROM edges WHERE fate = 'sends'
  UNION
  SELECT w.producer_step, w.rank, w.producer_seq
  FROM leaving AS l
  JOIN ways AS w ON w.rank = l.rank AND w.step = l.step AND w.seq = l.seq
)
SELECT * FROM leaving
