-- nan/entries: one row per call at which a NaN or an infinity came into a rank's record; the
-- entries are those of nan/entry_tensors.
--
-- `alive`: it goes on to a loose end on this rank. Of several imports of one size, the first that
-- lives and the first that dies stand for all. `forward_seq`: of a backward call, its forward call
-- when that held a bad value already which lives, or left the rank.
--
-- scope:   rank
-- uses:    lib/words_for, lib/forward_name
-- reads:   calls           one row per call
--          bad_calls       one row per call that reads or makes NaN or an infinity, from
--                          nan/bad_calls
--          entry_tensors   one row per tensor in which one came in, from nan/entry_tensors
--          on_purpose      one row per call with an infinity that was asked for, from
--                          nan/on_purpose
--          alive           one row per call whose bad value lives, from nan/alive
--          leaving         one row per call whose bad value leaves the rank, from nan/leaving
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, entry VARCHAR, slots VARCHAR[], found VARCHAR[],
--          numel BIGINT, dtype VARCHAR, weight BOOLEAN, given BOOLEAN, alive BOOLEAN,
--          forward_seq BIGINT, name VARCHAR, api VARCHAR, phase VARCHAR, module VARCHAR
WITH by_call AS (
  SELECT
    step,
    rank,
    seq,
    entry,
    list(slot ORDER BY slot) AS slots,
    words_for(bool_or(nan), bool_or(posinf), bool_or(neginf)) AS found,
    max(numel) AS numel,
    arg_min(dtype, slot) AS dtype,
    bool_or(weight) AS weight
  FROM entry_tensors
  GROUP BY step, rank, seq, entry
),
kept AS (
  SELECT e.*, a.seq IS NOT NULL AS alive
  FROM by_call AS e
  LEFT JOIN alive AS a USING (step, rank, seq)
  QUALIFY e.entry <> 'import'
    OR row_number() OVER (
      PARTITION BY e.step, e.rank, e.entry, e.numel, e.weight, a.seq IS NOT NULL ORDER BY e.seq
    ) = 1
),
named AS (
  SELECT k.*, c.name, c.api, c.phase, c.module
  FROM kept AS k
  JOIN calls AS c USING (step, rank, seq)
),
backward AS (
  SELECT step, rank, seq, forward_name(name) AS name FROM named WHERE phase = 'backward'
),
after_forward AS (
  SELECT n.step, n.rank, n.seq, max(f.seq) AS forward_seq
  FROM backward AS n
  JOIN calls AS f
    ON f.step = n.step AND f.rank = n.rank AND f.name = n.name AND f.seq < n.seq
  JOIN bad_calls AS b ON b.step = f.step AND b.rank = f.rank AND b.seq = f.seq
  JOIN (FROM alive UNION FROM leaving) AS a
    ON a.step = f.step AND a.rank = f.rank AND a.seq = f.seq
  GROUP BY n.step, n.rank, n.seq
)
SELECT
  n.step,
  n.rank,
  n.seq,
  n.entry,
  n.slots,
  n.found,
  n.numel,
  n.dtype,
  n.weight,
  p.manner IS NOT DISTINCT FROM 'given' AS given,
  n.alive,
  f.forward_seq,
  n.name,
  n.api,
  n.phase,
  n.module
FROM named AS n
LEFT JOIN on_purpose AS p USING (step, rank, seq)
LEFT JOIN after_forward AS f USING (step, rank, seq)
ORDER BY n.step, n.rank, n.seq, n.entry
