-- nan/weight_updates: one row per entry that tells of an optimizer's update.
--
--   in_place   a birth in a call that changes a tensor in place, one that requires a gradient and
--              that no call of the step made: nothing but an update does that
--   between    a bad weight that was finite when the same call read it a step earlier, or when a
--              call of an earlier step wrote it that was no update
--
-- scope:   rank
-- reads:   shard_files     one row per step and rank whose files were found
--          calls           one row per call
--          tensors         one row per tensor of a call
--          entry_tensors   one row per tensor in which a NaN or infinity came in, from
--                          nan/entry_tensors
--          bad_reads       one row per read of NaN or an infinity, with its producer, from
--                          nan/bad_reads
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, entry VARCHAR, manner VARCHAR
WITH steps AS (
  SELECT rank, step, lag(step) OVER (PARTITION BY rank ORDER BY step) AS earlier
  FROM shard_files
),
births AS (
  SELECT DISTINCT e.step, e.rank, e.seq
  FROM (SELECT * FROM entry_tensors WHERE entry = 'birth') AS e
  JOIN calls AS c USING (step, rank, seq)
  WHERE ends_with(c.api, '_') AND regexp_matches(c.api, '^(__i\w+__|[^_].*[^_]_)$')
),
changed AS (
  SELECT b.step, b.rank, b.seq, t.numel, t.max, t.min, t.direction = 'parameter' AS weight
  FROM births AS b
  JOIN tensors AS t USING (step, rank, seq)
  WHERE t.slot = 'input.0' AND (t.requires_grad OR t.direction = 'parameter')
),
bad_weights AS (
  SELECT e.step, e.rank, e.seq, e.entry, e.slot, s.earlier
  FROM (SELECT * FROM entry_tensors WHERE entry = 'import' AND weight) AS e
  JOIN steps AS s ON s.rank = e.rank AND s.step = e.step AND s.earlier IS NOT NULL
)
SELECT c.step, c.rank, c.seq, 'birth' AS entry, 'in_place' AS manner
FROM changed AS c
LEFT JOIN tensors AS m
  ON m.step = c.step AND m.rank = c.rank AND m.numel = c.numel AND m.seq < c.seq
  AND m.direction = 'output' AND m.max = c.max AND m.min = c.min
WHERE m.seq IS NULL OR c.weight
UNION
SELECT w.step, w.rank, w.seq, w.entry, 'between'
FROM bad_weights AS w
JOIN calls AS here ON here.step = w.step AND here.rank = w.rank AND here.seq = w.seq
JOIN calls AS before
  ON before.rank = w.rank AND before.step = w.earlier AND before.name = here.name
JOIN tensors AS t
  ON t.rank = before.rank AND t.step = before.step AND t.seq = before.seq AND t.slot = w.slot
WHERE t.has_nan = false AND NOT coalesce(t.has_posinf OR t.has_neginf, false)
UNION
SELECT e.step, e.rank, e.seq, e.entry, 'between'
FROM (SELECT * FROM entry_tensors WHERE entry = 'lost' AND weight) AS e
JOIN bad_reads AS r USING (step, rank, seq, slot)
JOIN calls AS p
  ON p.rank = r.rank AND p.step = r.producer_step AND p.seq = r.producer_seq
WHERE r.producer_step < e.step AND p.phase IS DISTINCT FROM 'optimizer'
ORDER BY step, rank, seq, entry
