-- nan/evidence: one row per call that may be an origin, with what a reader wants to see of it.
--
-- The first twenty of a rank and step; what began later there can hardly be an origin. A backward
-- call has no stack of its own: its forward call's is given, and what that one read.
--
-- scope:   rank
-- uses:    lib/words_for
-- reads:   calls          one row per call, with its stack
--          call_facts     one row per call, from schema/call_facts
--          tensor_facts   one row per tensor of a call, from schema/tensor_facts
--          entries        one row per call at which a NaN or infinity came in, from nan/entries
--          saturations    one row per step and rank where a result first saturated, from
--                         nan/saturations
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, module VARCHAR, stack VARCHAR,
--          tensors STRUCT(slot VARCHAR, direction VARCHAR, dtype VARCHAR, shape BIGINT[], max
--          DOUBLE, min DOUBLE, found VARCHAR[])[]
WITH first_entries AS (
  SELECT step, rank, seq
  FROM (
    SELECT step, rank, seq FROM entries
    UNION
    SELECT step, rank, seq FROM saturations
  )
  QUALIFY row_number() OVER (PARTITION BY step, rank ORDER BY seq) <= 20
),
shown AS (
  SELECT
    c.step,
    c.rank,
    c.seq,
    f.seq AS forward_seq,
    coalesce(c.module, f.module) AS module
  FROM first_entries AS e
  JOIN call_facts AS c USING (step, rank, seq)
  LEFT JOIN call_facts AS f
    ON c.phase = 'backward' AND f.step = c.step AND f.rank = c.rank
    AND f.name = regexp_replace(c.name, 'backward$', 'forward')
),
shown_tensors AS (
  SELECT s.seq AS of_call, t.direction AS part, t.*
  FROM shown AS s
  JOIN tensor_facts AS t USING (step, rank, seq)
  UNION ALL
  SELECT s.seq, 'forward input', t.*
  FROM shown AS s
  JOIN tensor_facts AS t ON t.step = s.step AND t.rank = s.rank AND t.seq = s.forward_seq
  WHERE t.direction = 'input'
),
values_of AS (
  SELECT
    step,
    rank,
    of_call AS seq,
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
  FROM shown_tensors
  WHERE role = 'value'
  GROUP BY step, rank, of_call
)
SELECT s.step, s.rank, s.seq, s.module, c.stack, v.tensors
FROM shown AS s
JOIN calls AS c
  ON c.step = s.step AND c.rank = s.rank AND c.seq = coalesce(s.forward_seq, s.seq)
LEFT JOIN values_of AS v USING (step, rank, seq)
ORDER BY s.step, s.rank, s.seq
