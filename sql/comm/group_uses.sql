-- comm/group_uses: one row per group that a rank's communication calls name in a step; of calls
-- whose group has no id, one row per call, `of_seq`.
--
-- The ranks of a group stand with every call. They are read where they are new alone: a thousand
-- calls in a group of a thousand ranks would be a million numbers.
--
-- scope:   rank
-- uses:    lib/ranks_hash
-- reads:   calls   one row per call
-- params:  none
-- returns: step BIGINT, rank BIGINT, group_id VARCHAR, of_seq BIGINT, ranks_hash UBIGINT,
--          ranks BIGINT[]
WITH firsts AS (
  SELECT step, rank, CASE WHEN group_id IS NULL THEN seq END AS of_seq, min(seq) AS seq
  FROM calls
  WHERE kind = 'comm'
  GROUP BY step, rank, group_id, of_seq
)
SELECT
  f.step,
  f.rank,
  c.group_id,
  f.of_seq,
  ranks_hash(c.group_ranks) AS ranks_hash,
  c.group_ranks AS ranks
FROM firsts AS f
JOIN calls AS c USING (step, rank, seq)
WHERE c.group_ranks IS NOT NULL
