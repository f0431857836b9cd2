-- diff/findings: one row per pair of calls about which there is something to say, with its status.
--
-- suspect, dtype, shape, argument, nonfinite, random: it begins here. `suspect` also where inputs
-- that differ by little, or only in dtype, turn into an output that differs by far more than they
-- do. propagated: an earlier difference explains it. drift, padding, requires_grad, recompute:
-- notes. A random operation is `random` where both results may be draws from one distribution, and
-- `suspect` where they are not.
--
-- scope:   rank
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          call_states      one row per pair of calls, from diff/call_states
--          differing        one row per pair of calls with something wrong, from diff/differing
--          tensor_pairs     one row per pair of tensors, from diff/tensor_pairs
--          argument_pairs   one row per pair of calls with another argument, from
--                           diff/argument_pairs
--          sources          one row per pair of calls that reads what only one dump made, from
--                           diff/sources
--          target_calls     one row per call of the target
--          real_errors      one row per pair of tensors whose elements are on record
--          draws            one row per pair of random calls with other results, from diff/draws
-- params:  none
-- returns: step BIGINT, rank BIGINT, bench_rank BIGINT, seq BIGINT, bench_seq BIGINT,
--          name VARCHAR, bench_name VARCHAR, api VARCHAR, phase VARCHAR, kind VARCHAR,
--          module VARCHAR, status VARCHAR, slot VARCHAR, bench_slot VARCHAR, is_input BOOLEAN,
--          weight BOOLEAN, ratio DOUBLE, tolerance DOUBLE, max_rel DOUBLE,
--          max_error DOUBLE, in_ratio DOUBLE, dtype VARCHAR, bench_dtype VARCHAR, value VARCHAR,
--          bench_value VARCHAR, source_name VARCHAR, source_bench_name VARCHAR,
--          stack_id UBIGINT, cosine DOUBLE,
--          ulp BIGINT, thousandth DOUBLE, first_index BIGINT[], alike BOOLEAN
WITH judged AS (
  SELECT
    s.*,
    d.* EXCLUDE (step, bench_seq, target_seq),
    s.out_kind IN ('value', 'dtype')
      AND s.in_ratio <= 1
      AND (s.out_ratio > greatest(1, 4 * s.in_ratio) OR s.out_norm > greatest(1, 8 * s.in_norm))
      AS jumps
  FROM call_states AS s
  LEFT JOIN differing AS d USING (step, bench_seq, target_seq)
),
told AS (
  SELECT
    p.*,
    j.* EXCLUDE (step, rank, bench_seq, target_seq),
    d.alike,
    CASE
      WHEN j.drift THEN 'drift'
      WHEN j.in_kind = 'argument' THEN 'argument'
      WHEN j.in_kind = 'dtype' AND NOT j.explained
        THEN CASE WHEN j.off THEN 'suspect' ELSE 'dtype' END
      WHEN j.in_kind IS NOT NULL AND NOT j.explained
        THEN CASE j.in_kind WHEN 'value' THEN 'suspect' ELSE j.in_kind END
      WHEN j.inside THEN 'propagated'
      WHEN d.step IS NOT NULL THEN CASE WHEN d.alike IS FALSE THEN 'suspect' ELSE 'random' END
      -- on the way back, terms that cancel make small errors of the way there large
      WHEN p.phase = 'backward' AND j.after AND j.out_kind = 'value' THEN 'propagated'
      -- and what a fused call reads is not judged
      WHEN p.how = 'fused' AND j.after AND j.out_kind = 'value' THEN 'propagated'
      WHEN j.in_kind IS NOT NULL
        THEN CASE WHEN j.jumps AND p.phase = 'forward' THEN 'suspect' ELSE 'propagated' END
      WHEN j.out_kind = 'value'
        THEN CASE WHEN j.jumps THEN 'suspect' WHEN j.in_ratio > 1 THEN 'propagated' ELSE 'drift' END
      WHEN j.out_kind IS NOT NULL THEN j.out_kind
      WHEN j.padding IS NOT NULL THEN 'padding'
      WHEN j.other_grad IS NOT NULL THEN 'requires_grad'
      WHEN p.how = 'recompute' THEN 'recompute'
    END AS status
  FROM call_pairs AS p
  JOIN judged AS j USING (step, bench_seq, target_seq)
  LEFT JOIN draws AS d USING (step, bench_seq, target_seq)
)
SELECT
  t.step,
  t.rank,
  t.bench_rank,
  t.target_seq AS seq,
  t.bench_seq,
  t.name,
  t.bench_name,
  t.api,
  t.phase,
  t.kind,
  t.module,
  t.status,
  coalesce(x.slot, t.slot, t.padding, t.other_grad) AS slot,
  coalesce(x.bench_slot, t.slot, t.padding, t.other_grad) AS bench_slot,
  coalesce(x.is_input, t.in_kind IS NOT NULL) AS is_input,
  coalesce(t.weight, false) AS weight,
  x.ratio,
  x.tolerance,
  x.max_rel,
  x.max_error,
  t.in_ratio,
  x.dtype,
  x.bench_dtype,
  a.value,
  a.bench_value,
  s.target_name AS source_name,
  s.bench_name AS source_bench_name,
  c.stack_id,
  r.cosine,
  r.ulp,
  r.thousandth,
  r.first_index,
  t.alike
FROM told AS t
LEFT JOIN tensor_pairs AS x
  ON x.step = t.step AND x.bench_seq = t.bench_seq AND x.target_seq = t.target_seq
  AND x.slot = CASE
    WHEN t.status = 'suspect' AND t.explained THEN t.out_slot
    ELSE coalesce(t.slot, t.padding, t.other_grad)
  END
LEFT JOIN real_errors AS r
  ON r.step = x.step AND r.bench_seq = x.bench_seq AND r.target_seq = x.target_seq
  AND r.slot = x.slot
LEFT JOIN argument_pairs AS a
  ON a.step = t.step AND a.bench_seq = t.bench_seq AND a.target_seq = t.target_seq
LEFT JOIN sources AS s
  ON s.step = t.step AND s.bench_seq = t.bench_seq AND s.target_seq = t.target_seq
LEFT JOIN target_calls AS c ON c.step = t.step AND c.seq = t.target_seq
WHERE t.status IS NOT NULL
ORDER BY t.step, t.rank, t.bench_rank, t.target_seq, t.bench_seq
