-- checkpoint/problems: one row per file that could not be read, is missing, or is not safe.
--
-- scope:   run
-- reads:   file_problems   one row per problem that a reader met
-- params:  none
-- returns: side VARCHAR, code VARCHAR, text VARCHAR, tensors VARCHAR[]
SELECT side, code, text, tensors
FROM file_problems
ORDER BY side, code, text
