-- nan/bad_calls: one row per call that reads or makes a NaN or an infinity.
--
-- `absorbs`: it read one, and every floating result that is on record is finite. A call whose
-- results cannot hold NaN (isnan, argmax) absorbs nothing: it only looked.
--
-- scope:   rank
-- uses:    lib/is_floating
-- reads:   tensors        one row per tensor of a call
--          bad_tensors    one row per tensor read or made that holds NaN or an infinity, from
--                         nan/bad_tensors
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, kind VARCHAR, reads_bad BOOLEAN,
--          makes_bad BOOLEAN, absorbs BOOLEAN, read_nan BOOLEAN, read_posinf BOOLEAN,
--          read_neginf BOOLEAN, made_nan BOOLEAN, made_posinf BOOLEAN, made_neginf BOOLEAN
WITH by_call AS (
  SELECT
    step,
    rank,
    seq,
    any_value(kind) AS kind,
    bool_or(is_read) AS reads_bad,
    bool_or(NOT is_read AND NOT allocated) AS makes_bad,
    bool_or(is_read AND nan) AS read_nan,
    bool_or(is_read AND posinf) AS read_posinf,
    bool_or(is_read AND neginf) AS read_neginf,
    bool_or(NOT is_read AND nan) AS made_nan,
    bool_or(NOT is_read AND posinf) AS made_posinf,
    bool_or(NOT is_read AND neginf) AS made_neginf
  FROM bad_tensors
  GROUP BY step, rank, seq
),
absorbing AS (
  SELECT b.step, b.rank, b.seq
  FROM by_call AS b
  JOIN tensors AS t USING (step, rank, seq)
  WHERE b.reads_bad AND NOT b.makes_bad
    AND t.direction = 'output' AND t.role = 'value' AND is_floating(t.dtype) AND t.numel > 0
  GROUP BY b.step, b.rank, b.seq
  HAVING bool_and(t.has_nan IS NOT NULL)
)
SELECT
  b.step,
  b.rank,
  b.seq,
  b.kind,
  b.reads_bad,
  b.makes_bad,
  a.seq IS NOT NULL AS absorbs,
  b.read_nan,
  b.read_posinf,
  b.read_neginf,
  b.made_nan,
  b.made_posinf,
  b.made_neginf
FROM by_call AS b
LEFT JOIN absorbing AS a USING (step, rank, seq)
