-- diff/module_errors: one row per step, rank, module and phase: the worst that its calls differ by.
--
-- Where modules are not on record, operations take their place.
--
-- scope:   rank
-- reads:   call_pairs    one row per pair of calls, from diff/call_pairs
--          call_states   one row per pair of calls, from diff/call_states
-- params:  none
-- returns: step BIGINT, rank BIGINT, module VARCHAR, phase VARCHAR, first_seq BIGINT, calls BIGINT,
--          differing BIGINT, worst DOUBLE
SELECT
  p.step,
  p.rank,
  coalesce(nullif(p.module, ''), p.api) AS module,
  coalesce(p.phase, '') AS phase,
  min(p.target_seq) AS first_seq,
  count(*) AS calls,
  count(*) FILTER (WHERE s.in_kind IS NOT NULL OR s.out_kind IS NOT NULL) AS differing,
  max(greatest(s.in_ratio, s.out_ratio)) AS worst
FROM call_pairs AS p
JOIN call_states AS s USING (step, bench_seq, target_seq)
GROUP BY ALL
ORDER BY p.step, p.rank, first_seq, module, phase
