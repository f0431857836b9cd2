-- checkpoint/hints: one row per pair whose difference has an explanation.
--
-- scope:   run
-- reads:   explanations   one row per pair that differs, with what explains it or nothing
-- params:  none
-- returns: pair BIGINT, hint VARCHAR
SELECT pair, hint
FROM explanations
WHERE hint <> ''
ORDER BY pair
