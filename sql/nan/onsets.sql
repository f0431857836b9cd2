-- nan/onsets: one row per step and rank that a living NaN or infinity came into: where it did so
-- first.
--
-- Where no lineage is on record, this explains every later bad value of the rank in the step.
--
-- scope:   run
-- reads:   living   one row per entry that did not die out, from nan/living
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, entry VARCHAR
SELECT step, rank, seq, entry
FROM living
-- a communication call may bring in what it read and what it received: the read comes first
QUALIFY row_number() OVER (PARTITION BY step, rank ORDER BY seq, entry = 'received', entry) = 1
