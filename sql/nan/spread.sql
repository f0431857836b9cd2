-- nan/spread: one row per origin, of a rank without record too, and rank that its value came to;
-- see lib/spread_from.
--
-- scope:   run
-- uses:    lib/spread_from
-- reads:   known_spread        one row per origin on record and rank its value came to, from
--                              nan/known_spread
--          unrecorded_starts   one row per origin on a rank without record, from
--                              nan/unrecorded_starts
--          handovers           one row per rank of an instance a bad value went through, from
--                              nan/handovers
--          living              one row per entry that did not die out, from nan/living
--          exits               one row per communication call a bad value left by and its entry,
--                              from nan/exits
--          shards              one row per step and rank on record, from health/shards
-- params:  none
-- returns: origin BIGINT, step BIGINT, rank BIGINT, ready BIGINT, hops BIGINT,
--          path STRUCT(rank BIGINT, "call" VARCHAR)[]
SELECT * FROM known_spread
UNION ALL
SELECT origin, step, rank, ready, hops, path
FROM spread_from('unrecorded_starts')
ORDER BY origin, step, rank
