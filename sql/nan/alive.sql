-- nan/alive: one row per call whose NaN or infinity goes on to a loose end on its own rank.
--
-- A bad value without a row died out here (every way onward ends in a finite result), or went on
-- only through communication: whether it lives then depends on the other ranks.
--
-- scope:   rank
-- reads:   ways         one row per way by which a NaN or infinity lives on, from nan/ways
--          loose_ends   one row per call whose bad result nobody reads, from nan/loose_ends
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT
WITH RECURSIVE alive AS (
  SELECT step, rank, seq FROM loose_ends
  UNION
  SELECT w.producer_step, w.rank, w.producer_seq
  FROM alive AS a
  JOIN ways AS w ON w.rank = a.rank AND w.step = a.step AND w.seq = a.seq
)
SELECT * FROM alive
