-- nan/entries: one row per call at which a NaN or an infinity came into a rank's record; see
-- entry_tensors.
--
-- `alive`: it goes on to a loose end on this rank. Of several imports of one size, the first that
-- lives and the first that dies stand for all. `after_forward`: a backward call whose forward
-- already held a living bad value.
--
-- scope:   rank
-- uses:    lib/words_for
-- reads:   call_facts      one row per call, from schema/call_facts
--          bad_calls       one row per call that reads or makes NaN or an infinity, from
--                          nan/bad_calls
--          entry_tensors   one row per tensor in which one came in, from nan/entry_tensors
--          on_purpose      one row per call with an infinity that was asked for, from
--                          nan/on_purpose
--          alive           one row per call whose bad value lives, from nan/alive
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, entry VARCHAR, slots VARCHAR[], found VARCHAR[],
--          numel BIGINT, dtype VARCHAR, weight BOOLEAN, given BOOLEAN, alive BOOLEAN,
--          after_forward BOOLEAN, name VARCHAR, api VARCHAR, phase VARCHAR, module VARCHAR
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
living_forward AS (
  SELECT step, rank, regexp_replace(c.name, 'forward$', 'backward') AS name
  FROM bad_calls AS b
  JOIN alive AS a USING (step, rank, seq)
  JOIN call_facts AS c USING (step, rank, seq)
  WHERE c.phase = 'forward'
)
SELECT
  e.step,
  e.rank,
  e.seq,
  e.entry,
  e.slots,
  e.found,
  e.numel,
  e.dtype,
  e.weight,
  p.manner IS NOT DISTINCT FROM 'given' AS given,
  a.seq IS NOT NULL AS alive,
  f.name IS NOT NULL AS after_forward,
  c.name,
  c.api,
  c.phase,
  c.module
FROM by_call AS e
JOIN call_facts AS c USING (step, rank, seq)
LEFT JOIN alive AS a USING (step, rank, seq)
LEFT JOIN on_purpose AS p USING (step, rank, seq)
LEFT JOIN living_forward AS f ON f.step = e.step AND f.rank = e.rank AND f.name = c.name
QUALIFY e.entry <> 'import'
  OR row_number() OVER (
    PARTITION BY e.step, e.rank, e.entry, e.numel, e.weight, a.seq IS NOT NULL ORDER BY e.seq
  ) = 1
ORDER BY e.step, e.rank, e.seq, e.entry
