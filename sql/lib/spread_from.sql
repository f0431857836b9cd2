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
WITH RECURSIVE carried AS (  -- from which entries what left by a call came, where that is on record
  SELECT
    step,
    rank,
    seq,
    list(entry_seq) FILTER (WHERE NOT received) AS own,
    bool_or(received) AS passes_on
  FROM exits
  SEMI JOIN (FROM shards WHERE lineage) USING (step, rank)
  GROUP BY step, rank, seq
),
givers AS (
  SELECT
    h.step,
    h.instance,
    h.rank,
    h.seq,
    h.name,
    s.lineage AND h.seq IS NOT NULL AS traced,
    coalesce(c.own, []) AS own,
    coalesce(c.passes_on, false) AS passes_on
  FROM handovers AS h
  LEFT JOIN shards AS s ON s.step = h.step AND s.rank = h.rank
  LEFT JOIN carried AS c ON c.step = h.step AND c.rank = h.rank AND c.seq = h.seq
  WHERE h.gives OR h.may_give
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
    list_append(arg_min(i.path, g.ready), {'rank': g.rank, 'call': arg_min_null(g.name, g.ready)})
  FROM (  -- the instances that the value gets into, each by the shortest way
    SELECT
      s.origin,
      s.step,
      h.instance,
      min(s.hops) AS hops,
      arg_min(s.path, (s.hops, s.rank)) AS way,
      arg_min({'rank': h.rank, 'call': h.name}, (s.hops, s.rank)) AS giver,
      CASE
        -- it began in this very call, or the rank left no record of it
        WHEN (giver).call IS NULL OR list_last(way).call = (giver).call THEN way
        ELSE list_append(way, giver)
      END AS path
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
