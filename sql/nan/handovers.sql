-- nan/handovers: one row per rank of a communication instance through which a NaN or an infinity
-- went.
--
--   gives       it brought one
--   may_give    it has no record of this call, the others brought none, and one came out: of what
--               this member brought, where the result is a list with a tensor of each
--   gets        one came out for it, or must have: what arrives is what was sent, also where the
--               record of a receive was made before its wait; `stale` then
--
-- A receive from a rank without record that looks finite counts as bad when the next bad read of
-- that size has no other explanation on its rank.
--
-- scope:   run
-- uses:    lib/hands_to_all, lib/size_of
-- reads:   members   one row per communication instance and rank, from comm/members
--          entries   one row per call at which a NaN or infinity came into a rank's record, from
--                    nan/entries
-- params:  none
-- returns: step BIGINT, instance VARCHAR, rank BIGINT, recorded BOOLEAN, seq BIGINT, name VARCHAR,
--          gives BOOLEAN, may_give BOOLEAN, gets BOOLEAN, stale BOOLEAN, numel BIGINT
WITH first_alive AS (
  SELECT step, rank, min(seq) AS seq
  FROM entries
  WHERE alive
  GROUP BY step, rank
),
unexplained AS (
  SELECT e.step, e.rank, e.seq, e.numel
  FROM entries AS e
  JOIN first_alive AS f USING (step, rank, seq)
  WHERE e.entry = 'import'
),
late AS (  -- receives without a recorded sender whose value shows up in a later read
  SELECT DISTINCT m.step, m.instance, m.rank
  FROM unexplained AS u
  JOIN members AS m
    ON m.step = u.step AND m.rank = u.rank AND m.seq < u.seq AND size_of(m.fill_shape) = u.numel
  JOIN members AS o ON o.step = m.step AND o.instance = m.instance AND NOT o.recorded
  WHERE m.recorded AND m.point_to_point AND m.fills AND NOT m.made_bad
),
touched AS (
  SELECT
    m.step,
    m.instance,
    coalesce(bool_or(m.read_bad), false) AS brought,
    coalesce(bool_or(m.made_bad), false) AS came_out,
    any_value(m.root) FILTER (WHERE m.api IN ('reduce', 'gather')) AS only_root,
    bool_and(m.bad_parts IS NOT NULL) FILTER (WHERE m.made_bad) AS in_parts,
    flatten(list(m.bad_parts) FILTER (WHERE m.made_bad AND m.bad_parts IS NOT NULL)) AS parts,
    any_value(l.rank) AS late_rank
  FROM members AS m
  LEFT JOIN late AS l USING (step, instance)
  GROUP BY m.step, m.instance
  HAVING bool_or(m.read_bad OR m.made_bad) OR any_value(l.rank) IS NOT NULL
),
judged AS (
  SELECT
    m.step,
    m.instance,
    m.rank,
    m.recorded,
    m.seq,
    m.name,
    coalesce(m.read_bad, false) AS gives,
    NOT m.recorded
      AND NOT t.brought
      AND NOT (coalesce(t.in_parts, false) AND m.place NOT IN t.parts) AS may_give,
    CASE
      -- a reduce and a gather give to the root alone
      WHEN NOT m.recorded THEN t.brought AND coalesce(t.only_root = m.rank, true)
      WHEN m.made_bad OR coalesce(t.late_rank = m.rank, false) THEN true
      WHEN m.point_to_point THEN t.brought AND NOT m.sends
      ELSE t.brought AND m.fills AND coalesce(m.async, false) AND hands_to_all(m.api, m.reduce_op)
    END AS gets,
    m.recorded AND NOT m.made_bad AS stale,
    size_of(m.fill_shape) AS numel
  FROM touched AS t
  JOIN members AS m USING (step, instance)
)
SELECT
  step, instance, rank, recorded, seq, name, gives, may_give, gets, stale AND gets AS stale, numel
FROM judged
WHERE gives OR may_give OR gets
