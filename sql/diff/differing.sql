-- diff/differing: one row per pair of calls with something wrong, and whether an earlier difference
-- explains what is wrong with its inputs.
--
-- Where lineage is on record, an input is explained when the call that made it gave another value.
-- Elsewhere everything after the first difference of the rank is, but for a weight, which comes
-- from outside of the step: the same weight must have differed before, or an earlier step. Another
-- dtype explains other dtypes, but no value that is off by more than its rounding.
-- Drift: a value just over the tolerance that grew from inputs that used a good part of theirs, and
-- what reads such values. A module is explained by a call inside of it.
--
-- `off`: what is not explained is a value, and another dtype that is would be no news. `after`: a
-- value on this rank was off before.
--
-- scope:   rank
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          call_states      one row per pair of calls, from diff/call_states
--          tensor_pairs     one row per pair of tensors, from diff/tensor_pairs
--          target_tensors   one row per tensor of the target
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT, drift BOOLEAN, explained BOOLEAN,
--          off BOOLEAN, after BOOLEAN, inside BOOLEAN, slot VARCHAR, weight BOOLEAN
WITH wrong AS (
  SELECT
    *,
    {'step': step, 'seq': target_seq} AS place,
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
    *,
    grown OR coalesce(
      in_kind = 'value'
      AND coalesce(out_kind, 'value') = 'value'
      AND greatest(in_ratio, out_ratio) <= 4
      AND place > min(place) FILTER (WHERE grown) OVER (),
      false
    ) AS drift
  FROM wrong
),
first AS (
  SELECT
    min(place) FILTER (WHERE NOT drift) AS place,
    min(place) FILTER (
      WHERE NOT drift
        AND (greatest(in_ratio, out_ratio) > 1 OR in_kind <> 'dtype' OR out_kind <> 'dtype')
    ) AS value_place,
    min(step) FILTER (WHERE NOT drift) AS first_step
  FROM softened
),
inputs AS (
  SELECT
    p.step,
    p.bench_seq,
    p.target_seq,
    {'step': p.step, 'seq': p.target_seq} AS place,
    p.slot,
    p.kind,
    p.weight,
    p.kind <> 'dtype' OR p.ratio > 1 AS off,
    CASE WHEN p.kind <> 'dtype' OR p.ratio > 1 THEN o.kind <> 'dtype' OR o.ratio > 1 ELSE true END
      AND o.kind IS NOT NULL AS made_wrong,
    o.step IS NOT NULL AS maker_paired,
    row_number() OVER (
      PARTITION BY p.step, coalesce(t.value_id, hash(t.shape, t.max, t.min, t.norm, t.checksum))
      ORDER BY p.target_seq, p.slot
    ) > 1 AS seen_before
  FROM tensor_pairs AS p
  JOIN target_tensors AS t
    ON t.step = p.step AND t.seq = p.target_seq AND t.slot = p.slot
  LEFT JOIN tensor_pairs AS o
    ON o.step = t.step AND o.target_seq = t.producer_seq AND o.slot = t.producer_slot
  SEMI JOIN wrong AS w
    ON w.step = p.step AND w.bench_seq = p.bench_seq AND w.target_seq = p.target_seq
  WHERE p.is_input AND p.kind IS NOT NULL
),
judged AS (
  SELECT
    i.*,
    CASE
      WHEN i.maker_paired THEN i.made_wrong
      WHEN i.weight THEN i.seen_before OR i.step > f.first_step
      WHEN i.off THEN i.place > f.value_place
      ELSE i.place > f.place
    END IS TRUE AS explained,
    i.place > f.place AS other_before
  FROM inputs AS i
  CROSS JOIN first AS f
),
by_call AS (
  SELECT
    step,
    bench_seq,
    target_seq,
    bool_and(explained) AS explained,
    bool_or(off AND NOT explained AND (weight OR other_before)) AS off,
    arg_min(
      {'slot': slot, 'weight': weight},
      (explained, NOT off OR kind = 'dtype', kind = 'value', length(slot), slot)
    ) AS first
  FROM judged
  GROUP BY step, bench_seq, target_seq
),
around AS (
  SELECT DISTINCT m.step, m.bench_seq, m.target_seq
  FROM call_pairs AS m
  JOIN call_pairs AS p
    ON p.step = m.step AND p.target_seq < m.target_seq AND p.phase = m.phase
    AND (p.module = m.module OR starts_with(p.module, concat(m.module, '.')))
  JOIN softened AS s ON s.step = p.step AND s.target_seq = p.target_seq
  JOIN softened AS w ON w.step = m.step AND w.target_seq = m.target_seq
  WHERE m.kind = 'module'
)
SELECT
  s.step,
  s.bench_seq,
  s.target_seq,
  s.drift,
  coalesce(c.explained, false) AS explained,
  coalesce(c.off, false) AS off,
  coalesce(s.place > f.value_place, false) AS after,
  a.step IS NOT NULL AS inside,
  coalesce(CASE WHEN s.in_kind <> 'argument' THEN c.first.slot END, s.in_slot, s.out_slot) AS slot,
  coalesce(c.first.weight, false) AS weight
FROM softened AS s
LEFT JOIN by_call AS c USING (step, bench_seq, target_seq)
LEFT JOIN around AS a USING (step, bench_seq, target_seq)
CROSS JOIN first AS f
