-- nan/evidence: one row per call that is asked about, with what a reader wants to see of it.
--
-- A backward call has no stack of its own: its forward call's is given, and what that one read.
--
-- scope:   rank
-- uses:    lib/words_for, lib/forward_name
-- reads:   calls     one row per call
--          tensors   one row per tensor of a call
--          wanted    one row per call that is asked about
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, module VARCHAR, stack VARCHAR,
--          tensors STRUCT(slot VARCHAR, direction VARCHAR, dtype VARCHAR, shape BIGINT[], max
--          DOUBLE, min DOUBLE, found VARCHAR[])[]
WITH asked AS (
  SELECT
    w.step,
    w.rank,
    w.seq,
    max(f.seq) AS forward_seq,
    coalesce(any_value(c.module), arg_max(f.module, f.seq)) AS module,
    coalesce(any_value(c.stack), arg_max(f.stack, f.seq)) AS stack
  FROM wanted AS w
  JOIN calls AS c USING (step, rank, seq)
  LEFT JOIN calls AS f
    ON f.step = w.step AND f.rank = w.rank AND f.name = forward_name(c.name) AND f.name <> c.name
  GROUP BY w.step, w.rank, w.seq
),
parts AS (
  SELECT a.seq AS of_seq, t.direction AS part, t.*
  FROM asked AS a
  JOIN tensors AS t USING (step, rank, seq)
  UNION ALL
  SELECT a.seq, 'forward input', t.*
  FROM asked AS a
  JOIN tensors AS t ON t.step = a.step AND t.rank = a.rank AND t.seq = a.forward_seq
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
SELECT a.step, a.rank, a.seq, a.module, a.stack, v.tensors
FROM asked AS a
LEFT JOIN values_of AS v USING (step, rank, seq)
ORDER BY a.step, a.rank, a.seq
