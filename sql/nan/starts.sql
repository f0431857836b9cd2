-- nan/starts: one row per origin and rank where its value is first, origins on ranks without record
-- too.
--
-- Of a rank without record it is not known when the value was there: from its beginning on.
--
-- scope:   run
-- reads:   known_starts         one row per origin on record and rank where its value is first,
--                               from nan/known_starts
--          unrecorded_origins   one row per rank without record that a bad value must have come
--                               from, from nan/unrecorded_origins
-- params:  none
-- returns: origin BIGINT, step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, received BOOLEAN
SELECT * FROM known_starts
UNION ALL
SELECT origin, step, rank, -1, name, false
FROM unrecorded_origins
ORDER BY origin, step, rank
