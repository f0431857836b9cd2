-- diff/sequences: one row per call of either dump that is paired by its place among the others:
-- every call but the backward of an API call whose forward is on record, which follows that.
--
-- A part is what is held side by side: the API calls of a micro step before the first backward call
-- or after it, the calls of one module, or what autograd did itself to tensors of one shape.
-- `even`: both dumps do the same operations from the same places in it, in the same order, so
-- position pairs them. `size` and `peak` are made of what a call reads, of norms and of extremes:
-- nearly equal where its inputs are. A call site or a module counts where both dumps have it.
--
-- scope:   rank
-- reads:   bench_calls      one row per call of the benchmark
--          target_calls     one row per call of the target
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
-- params:  none
-- returns: step BIGINT, part VARCHAR, even BOOLEAN, side VARCHAR, position BIGINT, seq BIGINT,
--          operation UBIGINT, site UBIGINT, module UBIGINT, call_index BIGINT, shapes UBIGINT,
--          size DOUBLE, peak DOUBLE, late BOOLEAN
WITH marks AS (
  SELECT
    side,
    step,
    seq,
    bit_xor(hash(key, shape)) AS shapes,
    sum(
      CASE
        WHEN max IS NULL AND norm IS NULL THEN coalesce((hash(checksum) % 1000003)::DOUBLE, 0)
        ELSE coalesce(norm, 0)
      END
    ) AS size,
    sum(0.618 * coalesce(max, 0) + 0.271 * coalesce(min, 0)) AS peak
  FROM (
    SELECT 'bench' AS side, * FROM bench_tensors
    UNION ALL BY NAME
    SELECT 'target' AS side, * FROM target_tensors
  )
  WHERE direction IN ('input', 'parameter') AND role = 'value'
  GROUP BY side, step, seq
),
calls AS (
  SELECT 'bench' AS side, * FROM bench_calls
  UNION ALL BY NAME
  SELECT 'target' AS side, * FROM target_calls
),
known AS (  -- of what both dumps have something on record
  SELECT
    count(DISTINCT side) FILTER (WHERE site IS NOT NULL) = 2 AS sites,
    count(DISTINCT side) FILTER (WHERE module IS NOT NULL AND kind <> 'module') = 2 AS modules
  FROM calls
),
placed AS (
  SELECT
    c.step,
    concat_ws(
      ' ',
      coalesce(c.micro_step, 0),
      c.kind = 'module',
      c.phase,
      CASE WHEN c.phase = 'forward' THEN c.late END,
      CASE
        WHEN c.kind IN ('module', 'saved') THEN c.operation
        WHEN c.phase = 'backward' THEN concat_ws(' ', c.operation, m.shapes)
      END
    ) AS part,
    c.side,
    c.seq,
    hash(c.operation) AS operation,
    CASE WHEN k.sites AND c.site IS NOT NULL THEN hash(c.site) ELSE 0 END AS site,
    CASE
      WHEN k.modules AND c.kind <> 'module' AND c.module IS NOT NULL THEN hash(c.module) ELSE 0
    END AS module,
    c.call_index,
    coalesce(m.shapes, 0) AS shapes,
    coalesce(m.size, 0) AS size,
    coalesce(m.peak, 0) AS peak,
    c.late
  FROM calls AS c
  CROSS JOIN known AS k
  LEFT JOIN marks AS m USING (side, step, seq)
  WHERE c.phase IS DISTINCT FROM 'backward' OR c.kind = 'module' OR c.forward_seq IS NULL
),
numbered AS (
  SELECT *, row_number() OVER (PARTITION BY step, part, side ORDER BY seq) - 1 AS position
  FROM placed
),
even_parts AS (
  SELECT step, part, min(signature) = max(signature) AND count(*) = 2 AS even
  FROM (
    SELECT step, part, side, bit_xor(hash(position, operation, site, module)) AS signature
    FROM numbered
    GROUP BY step, part, side
  )
  GROUP BY step, part
)
SELECT
  n.step,
  n.part,
  e.even,
  n.side,
  n.position,
  n.seq,
  n.operation,
  n.site::UBIGINT AS site,
  n.module::UBIGINT AS module,
  n.call_index,
  n.shapes::UBIGINT AS shapes,
  n.size,
  n.peak,
  n.late
FROM numbered AS n
JOIN even_parts AS e USING (step, part)
