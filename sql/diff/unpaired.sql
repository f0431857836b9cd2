-- diff/unpaired: one row per call that only one dump has.
--
-- `replaced`: both dumps have calls of their own right after the same pair, and what follows in the
-- target agrees: another implementation with the same result. `anchor` is the target's number of
-- that pair. So are the calls of a sequence that agrees with the single call it is paired with, and
-- their backward calls.
--
-- scope:   rank
-- reads:   bench_calls     one row per call of the benchmark
--          target_calls    one row per call of the target
--          call_pairs      one row per pair of calls, from diff/call_pairs
--          call_states     one row per pair of calls, from diff/call_states
--          fused_pairs     one row per call that is a sequence in the other dump, from
--                          diff/fused_pairs
-- params:  none
-- returns: step BIGINT, rank BIGINT, side VARCHAR, seq BIGINT, name VARCHAR, module VARCHAR,
--          anchor BIGINT, replaced BOOLEAN
WITH alone AS (
  SELECT b.step, b.rank, 'bench' AS side, b.seq, b.name, b.module, b.forward_seq,
    max(p.target_seq) AS anchor
  FROM (
    SELECT * FROM bench_calls AS c
    ANTI JOIN call_pairs AS p ON p.step = c.step AND p.bench_seq = c.seq
  ) AS b
  ASOF LEFT JOIN (FROM call_pairs WHERE how <> 'recompute') AS p
    ON p.step = b.step AND p.bench_seq < b.seq
  GROUP BY ALL
  UNION ALL
  SELECT t.step, t.rank, 'target', t.seq, t.name, t.module, t.forward_seq, max(p.target_seq)
  FROM (
    SELECT * FROM target_calls AS c
    ANTI JOIN call_pairs AS p ON p.step = c.step AND p.target_seq = c.seq
  ) AS t
  ASOF LEFT JOIN (FROM call_pairs WHERE how <> 'recompute') AS p
    ON p.step = t.step AND p.target_seq < t.seq
  GROUP BY ALL
),
blocks AS (
  SELECT step, anchor, count(DISTINCT side) = 2 AS in_both FROM alone GROUP BY step, anchor
),
followed AS (
  SELECT b.step, b.anchor, s.in_kind IS NULL AS agrees
  FROM (SELECT step, anchor FROM blocks WHERE in_both) AS b
  ASOF LEFT JOIN call_states AS s ON s.step = b.step AND s.target_seq > b.anchor
),
steps AS (
  SELECT DISTINCT a.step, a.side, a.seq
  FROM fused_pairs AS p
  JOIN call_states AS s USING (step, bench_seq, target_seq)
  JOIN alone AS a
    ON a.step = p.step AND a.side = p.side AND coalesce(a.forward_seq, a.seq) >= p.first_seq
    AND coalesce(a.forward_seq, a.seq)
      < CASE p.side WHEN 'bench' THEN p.bench_seq ELSE p.target_seq END
  WHERE s.out_kind IS NULL
)
SELECT
  a.step,
  a.rank,
  a.side,
  a.seq,
  a.name,
  a.module,
  a.anchor,
  s.seq IS NOT NULL OR (b.in_both AND coalesce(f.agrees, true)) AS replaced
FROM alone AS a
JOIN blocks AS b ON b.step = a.step AND b.anchor IS NOT DISTINCT FROM a.anchor
LEFT JOIN followed AS f ON f.step = a.step AND f.anchor = a.anchor
LEFT JOIN steps AS s ON s.step = a.step AND s.side = a.side AND s.seq = a.seq
ORDER BY a.step, a.rank, a.side, a.seq
