-- nan/unrecorded_origins: one row per rank whose record is missing and that a NaN or infinity must
-- have come from.
--
-- The first living bad value of some rank came out of an instance that no known origin leads to,
-- and this rank's part in it is not on record. `by_rank` and `name` are where it was first seen.
--
-- scope:   run
-- reads:   onsets            one row per step and rank: the first living entry, from nan/onsets
--          handovers         one row per rank of an instance a bad value went through, from
--                            nan/handovers
--          known_spread      one row per origin on record and rank its value came to, from
--                            nan/known_spread
--          origins           one row per origin on record, from nan/origins
--          recovered_steps   one row per step that recovered, from nan/recovered_steps
--          entries           one row per call at which a bad value came in, from nan/entries
-- params:  none
-- returns: origin BIGINT, step BIGINT, rank BIGINT, by_rank BIGINT, seq BIGINT, name VARCHAR,
--          found VARCHAR[]
WITH suspects AS (
  SELECT
    h.step,
    h.rank,
    o.rank AS by_rank,
    o.seq,
    g.name,
    coalesce(e.found, []) AS found
  FROM onsets AS o
  JOIN handovers AS g ON g.step = o.step AND g.rank = o.rank AND g.seq = o.seq AND g.gets
  JOIN handovers AS h ON h.step = g.step AND h.instance = g.instance AND h.may_give
  LEFT JOIN entries AS e
    ON e.step = o.step AND e.rank = o.rank AND e.seq = o.seq AND e.entry = 'received'
  ANTI JOIN known_spread AS s ON s.step = o.step AND s.rank = o.rank AND s.ready <= o.seq + 1
  ANTI JOIN recovered_steps AS r ON r.step = o.step
  WHERE o.entry = 'received'
  QUALIFY row_number() OVER (PARTITION BY h.step, h.rank ORDER BY o.seq, o.rank) = 1
)
SELECT
  (SELECT count(*) FROM origins) + row_number() OVER (ORDER BY step, rank) - 1 AS origin,
  step,
  rank,
  by_rank,
  seq,
  name,
  found
FROM suspects
-- what an earlier step did to the weights is no new origin
WHERE step <= coalesce((SELECT min(step) FROM origins), step)
  AND step = (SELECT min(step) FROM suspects)
ORDER BY origin
