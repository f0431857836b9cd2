-- nan/loose_ends: one row per call whose bad result nobody on record reads: where a NaN or an
-- infinity stays alive. Everything that leads here is alive; everything else died out.
--
-- Not loose, though nobody reads it:
--   * what an infinite or NaN argument gave, and a mask made of it: it is partly finite
--   * an infinity cut off by a clamp that is not on record: the next tensor of that size that
--     nobody made is finite and ends on the same finite side
--   * a value in passing: a forward computation read what was bad already and came from nowhere on
--     record (or stood at the dtype's limit), its result feeds no gradient, and the record goes on
--     after it: reserved memory that is looked at, a test of extreme values
--
-- scope:   rank
-- uses:    lib/nonfinite_argument
-- reads:   calls          one row per call
--          tensors        one row per tensor of a call
--          bad_calls      one row per call that reads or makes one, from nan/bad_calls
--          bad_reads      one row per read of one, with its producer, from nan/bad_reads
--          edges          one row per way of one into a later call, from nan/edges
--          unread         one row per bad result that nobody reads, from nan/unread
--          on_purpose     one row per call with an infinity that was asked for, from nan/on_purpose
--          saturated      one row per tensor at its dtype's limit, from nan/saturated
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT
WITH ends AS (
  SELECT step, rank, seq, bool_and(coalesce(NOT requires_grad, false)) AS feeds_nothing
  FROM unread
  GROUP BY step, rank, seq
),
unmade AS (  -- tensors of the size of a one-sided infinity, read later, that no call made
  SELECT
    u.step,
    u.rank,
    u.seq,
    u.slot,
    t.seq AS read_seq,
    NOT t.has_nan AND NOT t.has_posinf AND NOT t.has_neginf
      AND CASE WHEN u.posinf THEN t.min = u.low ELSE t.max = u.high END AS same_side
  FROM (SELECT * FROM unread WHERE posinf <> neginf AND NOT nan) AS u
  JOIN tensors AS t
    ON t.step = u.step AND t.rank = u.rank AND t.numel = u.numel AND t.seq > u.seq
  LEFT JOIN tensors AS m
    ON m.step = t.step AND m.rank = t.rank AND m.numel = t.numel AND m.max = t.max
    AND m.min = t.min AND m.seq < t.seq AND m.direction = 'output'
  WHERE t.direction = 'input' AND t.role = 'value' AND m.seq IS NULL
),
clamped AS (
  SELECT step, rank, seq, slot
  FROM unmade
  GROUP BY step, rank, seq, slot
  HAVING arg_min(same_side, (read_seq, NOT same_side))
),
last_calls AS (
  SELECT step, rank, max(seq) AS seq FROM calls GROUP BY step, rank
),
in_passing AS (
  SELECT e.step, e.rank, e.seq
  FROM ends AS e
  JOIN calls AS c USING (step, rank, seq)
  JOIN bad_calls AS b USING (step, rank, seq)
  JOIN last_calls AS l ON l.step = e.step AND l.rank = e.rank
  ANTI JOIN edges AS on_it  -- another of its results is read
    ON on_it.rank = e.rank AND on_it.producer_step = e.step AND on_it.producer_seq = e.seq
  ANTI JOIN (SELECT * FROM bad_reads WHERE source <> 'unmade') AS r
    ON r.step = e.step AND r.rank = e.rank AND r.seq = e.seq
  LEFT JOIN (
    SELECT DISTINCT step, rank, seq FROM saturated WHERE direction = 'input'
  ) AS s
    ON s.step = e.step AND s.rank = e.rank AND s.seq = e.seq
  WHERE e.seq < l.seq AND c.phase = 'forward' AND b.kind = 'compute' AND e.feeds_nothing
    AND (b.reads_bad OR s.seq IS NOT NULL)
)
SELECT DISTINCT u.step, u.rank, u.seq
FROM unread AS u
JOIN calls AS c USING (step, rank, seq)
JOIN bad_calls AS b USING (step, rank, seq)
LEFT JOIN on_purpose AS p USING (step, rank, seq)
ANTI JOIN clamped AS k ON k.step = u.step AND k.rank = u.rank AND k.seq = u.seq AND k.slot = u.slot
ANTI JOIN in_passing AS i ON i.step = u.step AND i.rank = u.rank AND i.seq = u.seq
WHERE NOT (nonfinite_argument(c.args) AND NOT b.reads_bad)
  AND NOT (p.manner IS NOT DISTINCT FROM 'kept' AND (isfinite(u.high) OR isfinite(u.low)))
