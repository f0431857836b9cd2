-- diff/stacks: one row per call stack of one dump.
--
-- scope:   rank
-- reads:   calls   one row per call
-- params:  none
-- returns: stack_id UBIGINT, stack VARCHAR
SELECT hash(stack) AS stack_id, stack
FROM calls
WHERE stack IS NOT NULL
GROUP BY stack
