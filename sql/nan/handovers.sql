-- nan/handovers: one row per rank of a communication instance through which a NaN or an infinity
-- went.
--
--   gives       it brought one
--   may_give    it has no record of this call, the others brought none, and one came out: of what
--               this member brought, where the result is a list with a tensor of each
--   gets        one came out for it, or must have: what arrives is what was sent, also where the
--               record of a receive was made before its wait
--
-- A receive from a rank without record that looks finite counts as bad when the next bad read of
-- that size has no other explanation on its rank.
--
-- scope:   run
-- uses:    lib/hands_to_all
-- reads:   members   one row per communication instance and rank, from comm/members
--          entries   one row per place where a NaN or infinity came into a rank's record, from
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
instances AS (
  SELECT
    step,
    instance,
    coalesce(bool_or(read_bad), false) AS brought,
    coalesce(bool_or(made_bad), false) AS came_out,
    bool_and(bad_parts IS NOT NULL) FILTER (WHERE made_bad) AS in_parts,
    flatten(list(bad_parts) FILTER (WHERE made_bad AND bad_parts IS NOT NULL)) AS parts
  FROM members
  GROUP BY step, instance
),
late AS (  -- receives without a recorded sender whose value shows up in a later read
  SELECT DISTINCT m.step, m.instance, m.rank
  FROM members AS m
  JOIN members AS o ON o.step = m.step AND o.instance = m.instance AND NOT o.recorded
  JOIN unexplained AS u
    ON u.step = m.step AND u.rank = m.rank AND u.seq > m.seq
    AND u.numel = list_aggregate(m.fill_shape, 'product')
  WHERE m.recorded AND m.point_to_point AND m.fills AND NOT m.made_bad
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
      AND NOT i.brought
      AND (i.came_out OR l.rank IS NOT NULL)
      AND NOT (coalesce(i.in_parts, false) AND m.place NOT IN i.parts) AS may_give,
    CASE
      WHEN NOT m.recorded THEN i.brought
      WHEN m.made_bad OR (l.rank IS NOT NULL AND l.rank = m.rank) THEN true
      WHEN m.point_to_point THEN i.brought AND NOT m.sends
      ELSE i.brought AND m.fills AND coalesce(m.async, false) AND hands_to_all(m.api, m.reduce_op)
    END AS gets,
    m.recorded AND NOT m.made_bad AS stale,
    list_aggregate(m.fill_shape, 'product')::BIGINT AS numel
  FROM members AS m
  JOIN instances AS i USING (step, instance)
  LEFT JOIN late AS l USING (step, instance)
)
SELECT
  step, instance, rank, recorded, seq, name, gives, may_give, gets, stale AND gets AS stale, numel
FROM judged
WHERE gives OR may_give OR gets
ORDER BY step, instance, rank
