-- diff/uneven: one row per call of a part whose operations are not the same in both dumps: position
-- cannot pair them, an alignment must.
--
-- scope:   rank
-- reads:   sequences   one row per call that is paired by its place, from diff/sequences
-- params:  none
-- returns: step BIGINT, part VARCHAR, side VARCHAR, seq BIGINT, operation UBIGINT, site UBIGINT,
--          module UBIGINT, call_index BIGINT, shapes UBIGINT, size DOUBLE,
--          peak DOUBLE
SELECT step, part, side, seq, operation, site, module, call_index, shapes, size, peak
FROM sequences
WHERE NOT even
ORDER BY step, part, side, seq
