-- diff/forward_pairs: one row per pair of calls, backward calls with a forward call aside, and how
-- it was found: place, crossed, fused, or recompute.
--
-- A late call that its place gave to none, and that reads what an earlier call of its operation
-- read, runs that call again for a checkpointed backward: it is held against the partner of the
-- first run.
--
-- scope:   rank
-- uses:    lib/near
-- reads:   sequences       one row per call that is paired by its place, from diff/sequences
--          placed_pairs    one row per pair that places give, from diff/placed_pairs
--          crossed_pairs   one row per pair that ran in another order, from diff/crossed_pairs
--          fused_pairs     one row per call that is a sequence in the other dump, from
--                          diff/fused_pairs
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT, how VARCHAR
WITH first_runs AS (
  SELECT step, bench_seq, target_seq, 'fused' AS how FROM fused_pairs
  UNION ALL
  SELECT *
  FROM (
    SELECT step, bench_seq, target_seq, 'crossed' AS how FROM crossed_pairs
    UNION ALL
    SELECT step, bench_seq, target_seq, 'place' AS how
    FROM placed_pairs
    ANTI JOIN crossed_pairs AS c USING (step, bench_seq)
    ANTI JOIN crossed_pairs AS d USING (step, target_seq)
  )
  ANTI JOIN fused_pairs AS e USING (step, bench_seq)
  ANTI JOIN fused_pairs AS f USING (step, target_seq)
),
paired AS (
  SELECT step, 'bench' AS side, bench_seq AS seq, target_seq AS partner FROM first_runs
  UNION ALL
  SELECT step, 'target', target_seq, bench_seq FROM first_runs
),
late_alone AS (
  SELECT s.* FROM sequences AS s ANTI JOIN paired USING (step, side, seq) WHERE s.late
),
again AS (
  SELECT l.step, l.side, l.seq, p.partner
  FROM late_alone AS l
  JOIN sequences AS s
    ON s.step = l.step AND s.side = l.side AND s.operation = l.operation AND s.shapes = l.shapes
    AND s.seq < l.seq AND NOT s.late
  JOIN paired AS p ON p.step = s.step AND p.side = s.side AND p.seq = s.seq
  WHERE near(l.size, s.size, 1e-4) AND near(l.peak, s.peak, 1e-4)
  QUALIFY row_number() OVER (
    PARTITION BY l.step, l.side, l.seq ORDER BY s.site <> l.site, s.module <> l.module, s.seq
  ) = 1
)
SELECT step, bench_seq, target_seq, how
FROM first_runs
UNION ALL
SELECT
  step,
  CASE side WHEN 'bench' THEN seq ELSE partner END,
  CASE side WHEN 'bench' THEN partner ELSE seq END,
  'recompute'
FROM again
