-- checkpoint/alone: one row per tensor that is on one side only, or of another shape there.
--
-- What may lie in a file of the other side that could not be read is incomparable, not missing.
--
-- scope:   run
-- reads:   strays   one row per tensor without a partner of its shape
-- params:  none
-- returns: side VARCHAR, kind VARCHAR, status VARCHAR, name VARCHAR, name_b VARCHAR, hint VARCHAR,
--          shape_a BIGINT[], shape_b BIGINT[]
SELECT side, kind, status, name, name_b, hint, shape_a, shape_b
FROM strays
ORDER BY kind DESC, side, name
