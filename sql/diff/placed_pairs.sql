-- diff/placed_pairs: one row per pair of calls that their places give: by position in even parts,
-- by alignment in the others.
--
-- scope:   rank
-- reads:   sequences   one row per call that is paired by its place, from diff/sequences
--          aligned     one row per pair of calls that an alignment of uneven parts gave
-- params:  none
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT
SELECT b.step, b.seq AS bench_seq, t.seq AS target_seq
FROM sequences AS b
JOIN sequences AS t USING (step, part, position)
WHERE b.even AND b.side = 'bench' AND t.side = 'target'
UNION ALL
SELECT step, bench_seq, target_seq
FROM aligned
