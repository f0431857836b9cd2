-- diff/call_pairs: one row per pair of calls, with the names of both; a backward call goes with its
-- forward call, whatever its own number is. `how` fused: one of the two is the last of a sequence
-- that does what the other does alone.
--
-- scope:   rank
-- reads:   bench_calls     one row per call of the benchmark
--          target_calls    one row per call of the target
--          forward_pairs   one row per pair of calls, from diff/forward_pairs
-- params:  none
-- returns: step BIGINT, rank BIGINT, bench_rank BIGINT, bench_seq BIGINT, target_seq BIGINT,
--          how VARCHAR, bench_name VARCHAR, name VARCHAR, api VARCHAR, phase VARCHAR,
--          kind VARCHAR, module VARCHAR,
--          forward_seq BIGINT
WITH backward_pairs AS (
  SELECT p.step, b.seq AS bench_seq, t.seq AS target_seq,
    CASE p.how WHEN 'fused' THEN 'fused' ELSE 'forward' END AS how
  FROM forward_pairs AS p
  JOIN bench_calls AS b
    ON b.step = p.step AND b.forward_seq = p.bench_seq AND b.kind <> 'module'
  JOIN target_calls AS t
    ON t.step = p.step AND t.forward_seq = p.target_seq AND t.kind <> 'module'
  QUALIFY row_number() OVER (PARTITION BY b.step, b.seq ORDER BY p.how = 'recompute', t.seq) = 1
    AND row_number() OVER (PARTITION BY b.step, t.seq ORDER BY p.how = 'recompute', b.seq) = 1
)
SELECT
  p.step,
  t.rank,
  b.rank AS bench_rank,
  p.bench_seq,
  p.target_seq,
  p.how,
  b.name AS bench_name,
  t.name,
  t.api,
  t.phase,
  t.kind,
  t.module,
  t.forward_seq
FROM (FROM forward_pairs UNION ALL FROM backward_pairs) AS p
JOIN bench_calls AS b ON b.step = p.step AND b.seq = p.bench_seq
JOIN target_calls AS t ON t.step = p.step AND t.seq = p.target_seq
ORDER BY p.step, t.rank, b.rank, p.target_seq, p.bench_seq
