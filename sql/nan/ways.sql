-- nan/ways: one row per way by which a NaN or an infinity lives on: from the call that made it into
-- a later call whose result is bad too.
--
-- A way into a call that turned an infinity, asked for by the caller, into something nobody asked
-- for is no such way: there a fault begins, and the infinity before it is none.
--
-- scope:   rank
-- reads:   edges        one row per way of a NaN or infinity into a later call, from nan/edges
--          on_purpose   one row per call with an infinity that was asked for, from nan/on_purpose
-- params:  none
-- returns: rank BIGINT, producer_step BIGINT, producer_seq BIGINT, step BIGINT, seq BIGINT
SELECT DISTINCT e.rank, e.producer_step, e.producer_seq, e.step, e.seq
FROM edges AS e
ANTI JOIN (SELECT * FROM on_purpose WHERE manner = 'turned') AS p USING (step, rank, seq)
WHERE e.fate = 'carries'
