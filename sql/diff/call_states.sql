-- diff/call_states: one row per pair of calls: the first thing that is wrong with its inputs, and
-- with its outputs, and how far both are apart.
--
-- Judged in this order: dtype, shape, plain arguments (which are inputs), non-finite values,
-- values. Ratios are multiples of the tolerance; `in_norm` and `out_norm` are of the norms alone,
-- which rounding hardly moves. A backward call also reads what its forward call read and made.
-- `padding`: the slot of a tensor that is longer on one side and means the same: the rest of it is
-- padding, or all that the call makes of it agrees.
--
-- scope:   rank
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          tensor_pairs     one row per pair of tensors, from diff/tensor_pairs
--          argument_pairs   one row per pair of calls with another argument, from
--                           diff/argument_pairs
-- params:  $strict BOOLEAN   every bit must be equal
-- returns: step BIGINT, rank BIGINT, bench_seq BIGINT, target_seq BIGINT, judged BIGINT,
--          in_kind VARCHAR, in_slot VARCHAR, out_kind VARCHAR, out_slot VARCHAR, in_ratio DOUBLE,
--          out_ratio DOUBLE, in_norm DOUBLE, out_norm DOUBLE, other_grad VARCHAR,
--          both_nonfinite BOOLEAN, padding VARCHAR
WITH sides AS (
  SELECT
    *,
    CASE kind
      WHEN 'dtype' THEN 1
      WHEN 'shape' THEN 2
      WHEN 'nonfinite' THEN 4
      WHEN 'value' THEN 5
    END AS urgency
  FROM tensor_pairs
),
tensors AS (
  SELECT
    step,
    bench_seq,
    target_seq,
    count(*) FILTER (WHERE judged) AS judged,
    arg_min(slot, (urgency, length(slot), slot)) FILTER (WHERE urgency > 0 AND is_input)
      AS in_slot,
    min(urgency) FILTER (WHERE is_input) AS in_urgency,
    arg_min(slot, (urgency, length(slot), slot)) FILTER (WHERE urgency > 0 AND NOT is_input)
      AS out_slot,
    min(urgency) FILTER (WHERE NOT is_input) AS out_urgency,
    coalesce(max(ratio) FILTER (WHERE judged AND is_input), 0) AS in_ratio,
    coalesce(max(ratio) FILTER (WHERE judged AND NOT is_input), 0) AS out_ratio,
    coalesce(max(norm_ratio) FILTER (WHERE judged AND is_input), 0) AS in_norm,
    coalesce(max(norm_ratio) FILTER (WHERE judged AND NOT is_input), 0) AS out_norm,
    min(slot) FILTER (WHERE other_grad) AS other_grad,
    bool_or(both_nonfinite) AS both_nonfinite,
    coalesce(
      min(slot) FILTER (WHERE agreement = 'padding'), min(slot) FILTER (WHERE kind = 'shape')
    ) AS padding,
    -- all that is wrong is the shape of what it reads
    coalesce(
      NOT $strict
      AND min(urgency) = 2
      AND max(urgency) = 2
      AND count(*) FILTER (WHERE urgency > 0 AND NOT is_input) = 0
      AND count(*) FILTER (WHERE judged AND NOT is_input) > 0,
      false
    ) AS harmless
  FROM sides
  GROUP BY step, bench_seq, target_seq
),
read_again AS (
  SELECT
    p.step,
    p.bench_seq,
    p.target_seq,
    max(greatest(t.in_ratio, t.out_ratio)) AS ratio,
    max(greatest(t.in_norm, t.out_norm)) AS norm
  FROM call_pairs AS p
  JOIN tensors AS t ON t.step = p.step AND t.target_seq = p.forward_seq
  WHERE p.phase = 'backward'
  GROUP BY p.step, p.bench_seq, p.target_seq
)
SELECT
  p.step,
  p.rank,
  p.bench_seq,
  p.target_seq,
  coalesce(t.judged, 0) AS judged,
  CASE
    WHEN t.harmless AND a.slot IS NULL THEN NULL
    WHEN t.in_urgency < 3 THEN ['dtype', 'shape'][t.in_urgency]
    WHEN a.slot IS NOT NULL THEN 'argument'
    WHEN t.in_urgency > 3 THEN ['nonfinite', 'value'][t.in_urgency - 3]
  END AS in_kind,
  CASE WHEN a.slot IS NULL OR t.in_urgency < 3 THEN t.in_slot ELSE a.slot END AS in_slot,
  ['dtype', 'shape', NULL, 'nonfinite', 'value'][t.out_urgency] AS out_kind,
  t.out_slot,
  greatest(t.in_ratio, r.ratio, 0) AS in_ratio,
  coalesce(t.out_ratio, 0) AS out_ratio,
  greatest(t.in_norm, r.norm, 0) AS in_norm,
  coalesce(t.out_norm, 0) AS out_norm,
  t.other_grad,
  coalesce(t.both_nonfinite, false) AS both_nonfinite,
  CASE
    WHEN t.harmless AND a.slot IS NULL OR t.in_urgency IS NULL AND t.out_urgency IS NULL
      THEN t.padding
  END AS padding
FROM call_pairs AS p
LEFT JOIN tensors AS t USING (step, bench_seq, target_seq)
LEFT JOIN read_again AS r USING (step, bench_seq, target_seq)
LEFT JOIN argument_pairs AS a USING (step, bench_seq, target_seq)
