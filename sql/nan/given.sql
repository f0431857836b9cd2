-- nan/given: one row per call that made an infinity out of an infinite argument: full(-inf),
-- masked_fill(-inf).
--
-- scope:   rank
-- uses:    lib/nonfinite_argument
-- reads:   calls       one row per call
--          bad_calls   one row per call that reads or makes NaN or an infinity, from nan/bad_calls
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT
WITH makers AS MATERIALIZED (  -- few: only their arguments are looked through
  SELECT b.step, b.rank, b.seq, c.args
  FROM bad_calls AS b
  JOIN calls AS c USING (step, rank, seq)
  WHERE b.makes_bad AND NOT b.reads_bad AND NOT b.made_nan
)
SELECT step, rank, seq
FROM makers
WHERE nonfinite_argument(args)
