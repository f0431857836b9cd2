-- diff/differing: one row per pair of calls with something wrong, and whether an earlier difference
-- explains what is wrong with its inputs.
--
-- Where lineage is on record, an input is explained when the call that made it gave another value.
-- Elsewhere everything after the first difference of the rank is, but for a weight, which comes
-- from outside of the step: the same weight must have differed before, or an earlier step.
-- Drift: a value just over the tolerance that grew from inputs that used a good part of theirs, and
-- what reads such values.
--
-- scope:   rank
-- reads:   call_states      one row per pair of calls, from diff/call_states
--          tensor_pairs     one row per pair of tensors, from diff/tensor_pairs
--          target_tensors   one row per tensor of the target
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT, drift BOOLEAN, explained BOOLEAN,
--          slot VARCHAR, weight BOOLEAN, outside BOOLEAN, producer_seq BIGINT
WITH wrong AS (
  SELECT
    *,
    in_kind IS NULL
      AND out_kind = 'value'
      AND out_ratio <= 4
      AND in_ratio >= 0.25
      AND out_ratio <= 4 * in_ratio AS grown
  FROM call_states
  WHERE in_kind IS NOT NULL OR out_kind IS NOT NULL
),
softened AS (
  SELECT
    w.*,
    grown OR coalesce(
      in_kind IS NOT DISTINCT FROM 'value'
      AND (out_kind = 'value') IS NOT FALSE
      AND greatest(in_ratio, out_ratio) <= 4
      AND (w.step, w.target_seq) > min((w.step, w.target_seq)) FILTER (WHERE grown) OVER (),
      false
    ) AS drift
  FROM wrong AS w
),
first_hard AS (
  SELECT min((step, target_seq)) AS at, min(step) AS step FROM softened WHERE NOT drift
),
inputs AS (
  SELECT
    p.step,
    p.bench_seq,
    p.target_seq,
    p.slot,
    p.kind,
    p.weight,
    t.value_id,
    t.producer_seq,
    CASE WHEN o.step IS NOT NULL THEN o.kind IS NOT NULL END AS made_wrong,
    row_number() OVER (
      PARTITION BY p.step, coalesce(t.value_id, hash(t.shape, t.max, t.min, t.norm, t.checksum))
      ORDER BY p.target_seq, p.slot
    ) > 1 AS seen_before
  FROM tensor_pairs AS p
  JOIN target_tensors AS t
    ON t.step = p.step AND t.seq = p.target_seq AND t.slot = p.slot
  LEFT JOIN tensor_pairs AS o
    ON o.step = t.step AND o.target_seq = t.producer_seq AND o.slot = t.producer_slot
  WHERE p.is_input AND p.kind IS NOT NULL
),
judged AS (
  SELECT
    i.*,
    CASE
      WHEN i.made_wrong IS NOT NULL THEN i.made_wrong
      WHEN i.weight THEN i.seen_before OR i.step > f.step
      ELSE (i.step, i.target_seq) > f.at
    END AS explained
  FROM inputs AS i
  CROSS JOIN first_hard AS f
),
by_call AS (
  SELECT
    step,
    bench_seq,
    target_seq,
    bool_and(explained) AS explained,
    arg_min(
      {'slot': slot, 'weight': weight, 'producer_seq': producer_seq, 'value_id': value_id},
      (explained, kind = 'value', kind = 'nonfinite', kind = 'shape', length(slot), slot)
    ) AS first
  FROM judged
  GROUP BY step, bench_seq, target_seq
)
SELECT
  s.step,
  s.bench_seq,
  s.target_seq,
  s.drift,
  coalesce(c.explained, false) AS explained,
  coalesce(CASE WHEN s.in_kind <> 'argument' THEN c.first.slot END, s.in_slot, s.out_slot) AS slot,
  coalesce(c.first.weight, false) AS weight,
  coalesce(c.first.value_id IS NOT NULL AND c.first.producer_seq IS NULL, false) AS outside,
  c.first.producer_seq AS producer_seq
FROM softened AS s
LEFT JOIN by_call AS c USING (step, bench_seq, target_seq)
