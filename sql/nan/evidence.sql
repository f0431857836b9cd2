-- nan/evidence: one row per call that may be an origin, with what a reader wants to see of it.
--
-- Eight of a rank and step, and eight more where communication brought one: the first whose bad
-- values live, then the first of the others. A backward call has no stack of its own: its forward
-- call's is given, and what that one read.
--
-- scope:   rank
-- uses:    lib/words_for, lib/forward_name
-- reads:   calls          one row per call
--          call_facts     one row per call, from schema/call_facts
--          tensor_facts   one row per tensor of a call, from schema/tensor_facts
--          entries        one row per call at which a NaN or infinity came in, from nan/entries
--          saturations    one row per step and rank where a result first saturated, from
--                         nan/saturations
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, module VARCHAR, stack VARCHAR,
--          tensors STRUCT(slot VARCHAR, direction VARCHAR, dtype VARCHAR, shape BIGINT[], max
--          DOUBLE, min DOUBLE, found VARCHAR[])[]
WITH likely AS (
  SELECT step, rank, seq, forward_name(name) AS forward
  FROM (
    SELECT step, rank, seq, name, alive, entry = 'received' AS received FROM entries
    UNION ALL
    SELECT step, rank, seq, name, true, false FROM saturations
  )
  GROUP BY step, rank, seq, name
  QUALIFY row_number() OVER (
    PARTITION BY step, rank, bool_and(received) ORDER BY NOT bool_or(alive), seq
  ) <= 8
),
shown AS (
  SELECT step, rank, seq, seq AS text_seq FROM likely
  UNION
  SELECT l.step, l.rank, l.seq, c.seq
  FROM likely AS l
  JOIN call_facts AS c ON c.step = l.step AND c.rank = l.rank AND c.name = l.forward
),
texts AS (
  SELECT
    s.step,
    s.rank,
    s.seq,
    max(s.text_seq) FILTER (WHERE s.text_seq <> s.seq) AS forward_seq,
    any_value(c.module ORDER BY s.text_seq DESC) AS module,
    any_value(c.stack ORDER BY s.text_seq DESC) AS stack
  FROM shown AS s
  JOIN calls AS c ON c.step = s.step AND c.rank = s.rank AND c.seq = s.text_seq
  GROUP BY s.step, s.rank, s.seq
),
parts AS (
  SELECT x.seq AS of_seq, t.direction AS part, t.*
  FROM texts AS x
  JOIN tensor_facts AS t USING (step, rank, seq)
  UNION ALL
  SELECT x.seq, 'forward input', t.*
  FROM texts AS x
  JOIN tensor_facts AS t ON t.step = x.step AND t.rank = x.rank AND t.seq = x.forward_seq
  WHERE t.direction = 'input'
),
values_of AS (
  SELECT
    step,
    rank,
    of_seq AS seq,
    list(
      {
        'slot': slot,
        'direction': part,
        'dtype': dtype,
        'shape': shape,
        'max': max,
        'min': min,
        'found': words_for(has_nan, has_posinf, has_neginf)
      }
      ORDER BY part = 'output', part = 'input', slot
    ) AS tensors
  FROM parts
  WHERE role = 'value'
  GROUP BY step, rank, of_seq
)
SELECT x.step, x.rank, x.seq, x.module, x.stack, v.tensors
FROM texts AS x
LEFT JOIN values_of AS v USING (step, rank, seq)
ORDER BY x.step, x.rank, x.seq
