-- diff/summary: one row per step and rank: how much was held against each other, by what, and how
-- many tensors agree in which way.
--
-- scope:   rank
-- reads:   call_pairs     one row per pair of calls, from diff/call_pairs
--          tensor_pairs   one row per pair of tensors, from diff/tensor_pairs
--          unpaired       one row per call that only one dump has, from diff/unpaired
--          real_errors    one row per pair of tensors whose elements are on record
-- params:  none
-- returns: step BIGINT, rank BIGINT, pairs BIGINT, judged BIGINT, by_values BIGINT,
--          by_checksum BIGINT, bits BIGINT, statistics BIGINT, nonfinite BIGINT,
--          other_bits BIGINT, noise BIGINT, rounding BIGINT, padding BIGINT, parts BIGINT,
--          only_in_bench BIGINT, only_in_target BIGINT
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
    count(*) FILTER (WHERE judged) AS judged,
    count(*) FILTER (WHERE part) AS parts,
    count(*) FILTER (WHERE judged AND same_bits IS NOT NULL) AS by_checksum,
    count(*) FILTER (WHERE agreement = 'bits') AS bits,
    count(*) FILTER (WHERE agreement = 'statistics') AS statistics,
    count(*) FILTER (WHERE agreement = 'nonfinite') AS nonfinite,
    count(*) FILTER (WHERE agreement = 'other_bits') AS other_bits,
    count(*) FILTER (WHERE agreement = 'noise') AS noise,
    count(*) FILTER (WHERE agreement = 'rounding') AS rounding,
    count(*) FILTER (WHERE agreement = 'padding') AS padding
  FROM tensor_pairs
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
  coalesce(any_value(t.bits), 0) AS bits,
  coalesce(any_value(t.statistics), 0) AS statistics,
  coalesce(any_value(t.nonfinite), 0) AS nonfinite,
  coalesce(any_value(t.other_bits), 0) AS other_bits,
  coalesce(any_value(t.noise), 0) AS noise,
  coalesce(any_value(t.rounding), 0) AS rounding,
  coalesce(any_value(t.padding), 0) AS padding,
  coalesce(any_value(t.parts), 0) AS parts,
  sum(c.bench)::BIGINT AS only_in_bench,
  sum(c.target)::BIGINT AS only_in_target
FROM counted AS c
LEFT JOIN tensors AS t USING (step, rank)
LEFT JOIN real_values AS v USING (step)
GROUP BY c.step, c.rank
ORDER BY c.step, c.rank
