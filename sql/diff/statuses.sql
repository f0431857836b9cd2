-- diff/statuses: one row per status that a finding or a call without a partner has: how many do.
--
-- scope:   run
-- reads:   findings   one row per pair of calls with something to say, from diff/findings
--          unpaired   one row per call that only one dump has, from diff/unpaired
-- params:  none
-- returns: status VARCHAR, calls BIGINT
SELECT status, count(*) AS calls
FROM findings
GROUP BY status
UNION ALL
SELECT CASE WHEN replaced THEN 'replaced' ELSE concat('only_in_', side) END AS status, count(*)
FROM unpaired
GROUP BY ALL
ORDER BY status
