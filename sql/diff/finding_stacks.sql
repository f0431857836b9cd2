-- diff/finding_stacks: one row per call at which a difference begins, with its call stack.
--
-- scope:   rank
-- reads:   findings        one row per pair of calls with something to say, from diff/findings
--          target_stacks   one row per call stack of the target
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, stack VARCHAR
SELECT DISTINCT f.step, f.rank, f.seq, s.stack
FROM findings AS f
JOIN target_stacks AS s USING (stack_id)
WHERE f.status NOT IN ('propagated', 'drift', 'padding', 'requires_grad', 'recompute')
ORDER BY f.step, f.rank, f.seq
