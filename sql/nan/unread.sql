-- nan/unread: one row per result that holds NaN or an infinity and that no call on record reads.
--
-- scope:   rank
-- reads:   bad_tensors   one row per tensor read or made that holds NaN or an infinity, from
--                        nan/bad_tensors
--          edges         one row per way of one into a later call, from nan/edges
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, slot VARCHAR, requires_grad BOOLEAN, nan BOOLEAN,
--          posinf BOOLEAN, neginf BOOLEAN, high DOUBLE, low DOUBLE, numel BIGINT
SELECT
  t.step, t.rank, t.seq, t.slot, t.requires_grad, t.nan, t.posinf, t.neginf, t.high, t.low, t.numel
FROM bad_tensors AS t
ANTI JOIN edges AS e
  ON e.rank = t.rank AND e.producer_step = t.step AND e.producer_seq = t.seq
  AND e.producer_likeness = t.likeness
WHERE NOT t.is_read AND NOT t.allocated
