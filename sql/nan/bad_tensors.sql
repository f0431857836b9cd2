-- nan/bad_tensors: one row per tensor that a call reads or makes and that holds NaN or an infinity.
--
-- Buffers are left out: what a call only writes into is not read, and what an unfinished receive
-- holds is no result. So are module records where API records exist: they repeat what their calls
-- did. Two tensors with the same `likeness` (rank, step, size, range, what they hold) may be the
-- same value.
--
-- scope:   rank
-- uses:    lib/allocates, lib/ignores_values
-- reads:   calls     one row per call
--          tensors   one row per tensor of a call
-- params:  $nan_only BOOLEAN   look for NaN alone
-- returns: step BIGINT, rank BIGINT, seq BIGINT, kind VARCHAR, slot VARCHAR, is_read BOOLEAN,
--          is_parameter BOOLEAN, allocated BOOLEAN, requires_grad BOOLEAN, nan BOOLEAN,
--          posinf BOOLEAN, neginf BOOLEAN, high DOUBLE, low DOUBLE, numel BIGINT, dtype VARCHAR,
--          likeness UBIGINT, value_id BIGINT, producer_seq BIGINT, producer_slot VARCHAR
WITH readers AS (
  SELECT
    step,
    rank,
    seq,
    kind,
    coalesce(allocates(api), false) AS allocates,
    coalesce(ignores_values(api), false) AS ignores_first
  FROM calls
),
with_apis AS (
  SELECT DISTINCT step, rank FROM calls WHERE kind IN ('compute', 'comm')
),
bad AS (
  SELECT
    *,
    direction IN ('input', 'parameter') AS is_read,
    coalesce(has_nan, false) AS nan,
    coalesce(has_posinf, false) AND NOT $nan_only AS posinf,
    coalesce(has_neginf, false) AND NOT $nan_only AS neginf
  FROM tensors
  WHERE has_nan OR (NOT $nan_only AND (has_posinf OR has_neginf))
)
SELECT
  b.step,
  b.rank,
  b.seq,
  c.kind,
  b.slot,
  b.is_read,
  b.direction = 'parameter' AS is_parameter,
  NOT b.is_read AND (b.role = 'buffer' OR c.allocates) AS allocated,
  b.requires_grad,
  b.nan,
  b.posinf,
  b.neginf,
  CASE WHEN b.posinf THEN 'inf'::DOUBLE ELSE coalesce(b.max, '-inf'::DOUBLE) END AS high,
  CASE WHEN b.neginf THEN '-inf'::DOUBLE ELSE coalesce(b.min, 'inf'::DOUBLE) END AS low,
  b.numel,
  b.dtype,
  hash(b.step, b.rank, b.numel, b.nan, high, low) AS likeness,
  b.value_id,
  b.producer_seq,
  b.producer_slot
FROM bad AS b
JOIN readers AS c USING (step, rank, seq)
LEFT JOIN with_apis AS w USING (step, rank)
WHERE
  (b.role = 'value' OR (b.role = 'buffer' AND NOT b.is_read AND c.kind <> 'comm'))
  AND NOT (c.kind = 'module' AND w.rank IS NOT NULL)
  AND NOT (c.ignores_first AND b.slot IN ('input.0', 'input.input', 'input.self'))
