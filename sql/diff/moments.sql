-- diff/moments: one row per communication operation of a rank of the target, in its order.
--
-- What happens on several ranks is ordered by these alone, never by time.
--
-- scope:   run
-- reads:   instances   one row per operation of a rank with its instance, from comm/instances
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, instance VARCHAR
SELECT step, rank, seq, instance
FROM instances
ORDER BY step, rank, seq, item
