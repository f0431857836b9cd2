-- diff/error_profile: one row per step, rank and stretch of calls: the largest relative error of
-- what its calls made, noise aside, so that a curve along the run has some 200 points a rank.
--
-- scope:   rank
-- reads:   call_pairs     one row per pair of calls, from diff/call_pairs
--          tensor_pairs   one row per pair of tensors, from diff/tensor_pairs
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, max_rel DOUBLE, name VARCHAR
WITH outputs AS (
  SELECT p.step, p.rank, p.target_seq, p.name, max(x.ratio * x.tolerance) AS max_rel
  FROM call_pairs AS p
  JOIN tensor_pairs AS x USING (step, bench_seq, target_seq)
  WHERE NOT x.is_input AND isfinite(x.ratio)
  GROUP BY p.step, p.rank, p.target_seq, p.name
),
stretches AS (
  SELECT *, target_seq * 200 // (max(target_seq) OVER (PARTITION BY step) + 1) AS stretch
  FROM outputs
)
SELECT
  step,
  rank,
  min(target_seq) AS seq,
  max(max_rel) AS max_rel,
  arg_max(name, max_rel) AS name
FROM stretches
GROUP BY step, rank, stretch
ORDER BY step, rank, seq
