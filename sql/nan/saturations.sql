-- nan/saturations: one row per step and rank where a computation's result first stood at its
-- dtype's largest finite value, though nothing that it read did: an overflow on hardware that
-- saturates (INF_NAN_MODE_ENABLE=0).
--
-- Not counted: limits that the caller passed as an argument (masks of torch.finfo(dtype).min), and
-- the formats of 8 bits and fewer, whose scaling fills the range on purpose.
--
-- scope:   rank
-- uses:    lib/limit_argument, lib/dtype_limit
-- reads:   calls       one row per call
--          tensors     one row per tensor of a call
--          saturated   one row per tensor at its dtype's limit, from nan/saturated
-- params:  $nan_only BOOLEAN   look for NaN alone
-- returns: step BIGINT, rank BIGINT, seq BIGINT, slots VARCHAR[], dtype VARCHAR, name VARCHAR,
--          api VARCHAR, phase VARCHAR, module VARCHAR
WITH results AS (
  SELECT step, rank, seq, list(slot ORDER BY slot) AS slots, min(dtype) AS dtype
  FROM saturated
  WHERE direction = 'output' AND role = 'value' AND NOT $nan_only
    AND dtype NOT LIKE 'float8%' AND dtype NOT LIKE 'float4%'
  GROUP BY step, rank, seq
),
from_inside AS (
  SELECT s.step, s.rank, s.seq
  FROM saturated AS s
  JOIN tensors AS t USING (step, rank, seq)
  WHERE t.direction = 'input'
  GROUP BY s.step, s.rank, s.seq
  HAVING NOT bool_or(
    coalesce(t.saturated, false)
    OR coalesce(t.has_nan OR t.has_posinf OR t.has_neginf, false)
  )
)
SELECT r.step, r.rank, r.seq, r.slots, r.dtype, c.name, c.api, c.phase, c.module
FROM results AS r
JOIN from_inside AS f USING (step, rank, seq)
JOIN calls AS c USING (step, rank, seq)
WHERE c.kind = 'compute' AND NOT limit_argument(c.args, dtype_limit(r.dtype))
QUALIFY row_number() OVER (PARTITION BY r.step, r.rank ORDER BY r.seq) = 1
ORDER BY r.step, r.rank
