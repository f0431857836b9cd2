-- diff/summary: one row per step and rank: how much was held against each other, and by what.
--
-- scope:   rank
-- reads:   call_pairs     one row per pair of calls, from diff/call_pairs
--          tensor_pairs   one row per pair of tensors, from diff/tensor_pairs
--          unpaired       one row per call that only one dump has, from diff/unpaired
--          real_errors    one row per pair of tensors whose elements are on record
-- params:  none
-- returns: step BIGINT, rank BIGINT, pairs BIGINT, judged BIGINT, by_values BIGINT,
--          by_checksum BIGINT, only_in_bench BIGINT, only_in_target BIGINT
WITH counted AS (
  SELECT step, rank, count(*) AS pairs, 0 AS bench, 0 AS target FROM call_pairs GROUP BY step, rank
  UNION ALL
  SELECT
    step, rank, 0, count(*) FILTER (WHERE side = 'bench'), count(*) FILTER (WHERE side = 'target')
  FROM unpaired
  GROUP BY step, rank
),
tensors AS (
  SELECT
    step,
    rank,
    count(*) AS judged,
    count(*) FILTER (WHERE same_bits IS NOT NULL) AS by_checksum
  FROM tensor_pairs
  WHERE judged
  GROUP BY step, rank
),
real_values AS (SELECT step, count(*) AS by_values FROM real_errors GROUP BY step)
SELECT
  c.step,
  c.rank,
  sum(c.pairs)::BIGINT AS pairs,
  coalesce(any_value(t.judged), 0) AS judged,
  coalesce(any_value(v.by_values), 0) AS by_values,
  coalesce(any_value(t.by_checksum), 0) AS by_checksum,
  sum(c.bench)::BIGINT AS only_in_bench,
  sum(c.target)::BIGINT AS only_in_target
FROM counted AS c
LEFT JOIN tensors AS t USING (step, rank)
LEFT JOIN real_values AS v USING (step)
GROUP BY c.step, c.rank
ORDER BY c.step, c.rank
