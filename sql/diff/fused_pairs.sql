-- diff/fused_pairs: one row per call that the other dump runs as a sequence of operations, with the
-- call of it that gives the result.
--
-- Only between two frameworks. Sequence and call stand between the same two pairs, neither has a
-- partner, and the result has one shape on both sides, perhaps after a view. Of an operation that
-- its own sequence begins with (a convolution whose bias is added apart), the first was paired by
-- its place: that gives way. `first_seq`: where the sequence begins, with the views before it, on
-- the side that has it.
--
-- scope:   rank
-- uses:    lib/is_view
-- reads:   placed_pairs     one row per pair that places give, from diff/placed_pairs
--          crossed_pairs    one row per pair that ran in another order, from diff/crossed_pairs
--          fusions          one row per sequence that stands for an operation, from diff/fusions
--          bench_calls      one row per call of the benchmark
--          target_calls     one row per call of the target
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
-- params:  $cross BOOLEAN   the dumps are of two frameworks
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT, side VARCHAR, first_seq BIGINT
WITH pairs AS (
  FROM placed_pairs WHERE $cross UNION FROM crossed_pairs WHERE $cross
),
calls AS (
  SELECT 'bench' AS side, step, seq, operation FROM bench_calls
  WHERE $cross AND phase = 'forward' AND kind <> 'module'
  UNION ALL
  SELECT 'target', step, seq, operation FROM target_calls
  WHERE $cross AND phase = 'forward' AND kind <> 'module'
),
partners AS (
  SELECT step, 'bench' AS side, bench_seq AS seq, bench_seq AS pair FROM pairs
  UNION ALL
  SELECT step, 'target', target_seq, bench_seq FROM pairs
),
placed AS (  -- `pair`: the pair that a call is of, or that comes before it
  SELECT
    c.*,
    p.pair,
    p.seq AS pair_seq,
    p.seq IS NOT DISTINCT FROM c.seq AS paired,
    is_view(c.operation) AS view
  FROM calls AS c
  ASOF LEFT JOIN partners AS p ON p.side = c.side AND p.step = c.step AND p.seq <= c.seq
),
runs AS (
  SELECT
    step,
    side,
    pair,
    list(operation ORDER BY seq) AS operations,
    list(seq ORDER BY seq) AS seqs,
    bool_or(paired) AS headed,
    coalesce(any_value(pair_seq), -1) AS pair_seq
  FROM placed
  WHERE NOT view
  GROUP BY step, side, pair
),
found AS (  -- places at which a known sequence begins
  SELECT r.*, f.fused, len(f.parts) AS length, i.start, r.headed AND i.start = 1 AS on_pair
  FROM runs AS r
  CROSS JOIN LATERAL (SELECT unnest(range(1, len(r.operations) + 1)) AS start) AS i
  JOIN fusions AS f ON r.operations[i.start : i.start + len(f.parts) - 1] = f.parts
  WHERE NOT (r.headed AND i.start = 1)
    OR (len(f.parts) > 1 AND f.parts[1] = f.fused)
  QUALIFY row_number() OVER (
    PARTITION BY r.step, r.side, r.pair, f.fused, i.start ORDER BY len(f.parts) DESC
  ) = 1
),
numbered AS (
  SELECT
    step,
    side,
    pair,
    fused,
    on_pair,
    CASE WHEN on_pair THEN seqs[start] WHEN start = 1 THEN pair_seq + 1 ELSE seqs[start - 1] + 1 END
      AS first_seq,
    seqs[start + length - 1] AS last_seq,
    seqs[start + length] AS next_seq,
    row_number() OVER (PARTITION BY step, side, pair, fused, on_pair ORDER BY start) AS number
  FROM found
),
single AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY step, side, pair, operation, paired ORDER BY seq) AS number
  FROM placed
),
outputs AS (
  SELECT 'bench' AS side, step, seq, shape FROM bench_tensors WHERE key = 'output1'
  UNION ALL
  SELECT 'target', step, seq, shape FROM target_tensors WHERE key = 'output1'
),
matched AS (
  SELECT n.step, n.side, n.first_seq, s.seq AS single_seq, min(c.seq) AS result_seq
  FROM numbered AS n
  JOIN single AS s
    ON s.step = n.step AND s.side <> n.side AND s.pair IS NOT DISTINCT FROM n.pair
    AND s.operation = n.fused AND s.paired = n.on_pair AND s.number = n.number
  JOIN outputs AS o ON o.side = s.side AND o.step = s.step AND o.seq = s.seq
  JOIN placed AS c
    ON c.step = n.step AND c.side = n.side AND c.pair IS NOT DISTINCT FROM n.pair
    AND c.seq >= n.last_seq AND c.seq < coalesce(n.next_seq, 9223372036854775807)
  JOIN outputs AS p ON p.side = c.side AND p.step = c.step AND p.seq = c.seq AND p.shape = o.shape
  GROUP BY n.step, n.side, n.first_seq, s.seq
)
SELECT
  step,
  CASE side WHEN 'bench' THEN result_seq ELSE single_seq END AS bench_seq,
  CASE side WHEN 'bench' THEN single_seq ELSE result_seq END AS target_seq,
  side,
  first_seq
FROM matched
