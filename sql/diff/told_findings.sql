-- diff/told_findings: one row per finding that an answer needs: those at which a difference may
-- begin, and the first thousand of all.
--
-- scope:   run
-- reads:   findings   one row per pair of calls with something to say, from diff/findings
-- params:  none
-- returns: step BIGINT, rank BIGINT, bench_rank BIGINT, seq BIGINT, bench_seq BIGINT,
--          name VARCHAR, bench_name VARCHAR, api VARCHAR, phase VARCHAR, kind VARCHAR,
--          module VARCHAR, status VARCHAR, slot VARCHAR, bench_slot VARCHAR, is_input BOOLEAN,
--          weight BOOLEAN, ratio DOUBLE, tolerance DOUBLE, max_rel DOUBLE,
--          max_error DOUBLE, in_ratio DOUBLE, dtype VARCHAR, bench_dtype VARCHAR, value VARCHAR,
--          bench_value VARCHAR, source_name VARCHAR, source_bench_name VARCHAR,
--          stack_id UBIGINT, cosine DOUBLE,
--          ulp BIGINT, thousandth DOUBLE, first_index BIGINT[], alike BOOLEAN
WITH first AS (FROM findings ORDER BY step, rank, seq LIMIT 1000)
FROM first
UNION
FROM findings
WHERE status IN ('suspect', 'dtype', 'shape', 'argument', 'random', 'nonfinite')
ORDER BY step, rank, seq
