-- diff/told_unpaired: one row per call that only one dump has, of the first thousand.
--
-- scope:   run
-- reads:   unpaired   one row per call that only one dump has, from diff/unpaired
-- params:  none
-- returns: step BIGINT, rank BIGINT, side VARCHAR, seq BIGINT, name VARCHAR, module VARCHAR,
--          anchor BIGINT, replaced BOOLEAN
FROM unpaired
QUALIFY row_number() OVER (ORDER BY step, rank, side, seq) <= 1000
ORDER BY step, rank, side, seq
