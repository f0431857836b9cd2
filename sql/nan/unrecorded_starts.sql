-- nan/unrecorded_starts: one row per origin on a rank without record. When its value was there is
-- not known: from the beginning on.
--
-- scope:   run
-- reads:   unrecorded_origins   one row per rank without record that a bad value must have come
--                               from, from nan/unrecorded_origins
-- params:  none
-- returns: origin BIGINT, step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, received BOOLEAN
SELECT origin, step, rank, -1::BIGINT AS seq, name, false AS received
FROM unrecorded_origins
