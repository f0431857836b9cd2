-- lib/spread_from: the ranks that the value of each origin came to, when first, and by which way,
-- from a table of starts (origin, step, rank, seq, name, received).
--
-- A rank hands on, from the call on at which it got the value, whatever bad it brings to a later
-- communication call; where lineage is on record, only what came from there. A rank without record
-- hands on what it was handed. `ready` is the first call that may hand it on; `path` names each
-- communication call on both sides.
--
-- scope:   lib
-- reads:   handovers   one row per rank of an instance a bad value went through, from nan/handovers
--          living      one row per entry that did not die out, from nan/living
--          exits       one row per communication call a bad value left by and its entry, from
--                      nan/exits
--          shards      one row per step and rank on record, from health/shards
CREATE OR REPLACE TEMP MACRO spread_from(starts) AS TABLE
WITH RECURSIVE givers AS (
  SELECT
    h.step,
    h.instance,
    h.rank,
    h.seq,
    h.name,
    s.lineage AND h.seq IS NOT NULL AS traced,
    coalesce(list(x.entry_seq) FILTER (WHERE NOT x.received), []) AS own,
    coalesce(bool_or(x.received), false) AS passes_on
  FROM handovers AS h
  LEFT JOIN shards AS s ON s.step = h.step AND s.rank = h.rank
  LEFT JOIN exits AS x ON x.step = h.step AND x.rank = h.rank AND x.seq = h.seq
  WHERE h.gives OR h.may_give
  GROUP BY h.step, h.instance, h.rank, h.seq, h.name, s.lineage
),
getters AS (
  SELECT h.step, h.instance, h.rank, coalesce(h.seq + 1, -1) AS ready, h.name
  FROM handovers AS h
  LEFT JOIN living AS l
    ON l.step = h.step AND l.rank = h.rank AND l.seq = h.seq AND l.entry = 'received'
  WHERE h.gets AND (NOT h.recorded OR l.rank IS NOT NULL)
),
spread(origin, step, rank, received, ready, hops, path)
USING KEY (origin, step, rank, received) AS (
  SELECT
    origin,
    step,
    rank,
    received,
    CASE WHEN received THEN seq + 1 ELSE seq END,
    0::BIGINT,
    [{'rank': rank, 'call': name}]
  FROM query_table(starts)
  UNION
  SELECT
    i.origin,
    i.step,
    g.rank,
    true,
    min(g.ready),
    arg_min(i.hops + 1, g.ready),
    arg_min(list_append(i.path, {'rank': g.rank, 'call': g.name}), g.ready)
  FROM (  -- the instances that the value gets into, each by the shortest way
    SELECT
      s.origin,
      s.step,
      h.instance,
      min(s.hops) AS hops,
      arg_min(
        CASE
          -- it began in this very call, or the rank left no record of it
          WHEN h.name IS NULL OR list_last(s.path).call = h.name THEN s.path
          ELSE list_append(s.path, {'rank': h.rank, 'call': h.name})
        END,
        (s.hops, s.rank)
      ) AS path
    FROM spread AS s
    JOIN givers AS h ON h.step = s.step AND h.rank = s.rank
    WHERE (h.seq IS NULL OR h.seq >= s.ready)
      AND (NOT h.traced OR CASE WHEN s.received THEN h.passes_on ELSE s.ready IN h.own END)
    GROUP BY s.origin, s.step, h.instance
  ) AS i
  JOIN getters AS g ON g.step = i.step AND g.instance = i.instance
  LEFT JOIN recurring.spread AS known
    ON known.origin = i.origin AND known.step = i.step AND known.rank = g.rank AND known.received
  WHERE known.rank IS NULL OR g.ready < known.ready
  GROUP BY i.origin, i.step, g.rank
)
SELECT origin, step, rank, ready, hops, path
FROM spread
-- a rank may hold a value as its own and, from a later call on, as one that came back to it
QUALIFY row_number() OVER (PARTITION BY origin, step, rank ORDER BY ready, hops) = 1
