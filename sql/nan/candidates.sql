-- nan/candidates: one row per place where a living NaN or infinity began: on a rank itself, or in a
-- communication instance whose members all brought finite values. In a step without any, where
-- results saturated instead.
--
-- scope:   run
-- reads:   local_origins           one row per such place on a rank, from nan/local_origins
--          communication_origins   one row per rank that got one out of such an instance, from
--                                  nan/communication_origins
--          saturations             one row per step and rank where a result first saturated, from
--                                  nan/saturations
--          onsets                  one row per step and rank: the first living entry, from
--                                  nan/onsets
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, kind VARCHAR, entry VARCHAR, certainty VARCHAR,
--          found VARCHAR[], slots VARCHAR[], dtype VARCHAR, phase VARCHAR, name VARCHAR,
--          api VARCHAR, module VARCHAR, instance VARCHAR,
--          members STRUCT(rank BIGINT, seq BIGINT, "call" VARCHAR)[], brought DOUBLE,
--          group_size BIGINT
SELECT
  step, rank, seq, kind, entry, certainty, found, slots, dtype, phase, name, api, module,
  NULL::VARCHAR AS instance,
  []::STRUCT(rank BIGINT, seq BIGINT, call VARCHAR)[] AS members,
  NULL::DOUBLE AS brought,
  NULL::BIGINT AS group_size
FROM local_origins
UNION ALL BY NAME
SELECT
  step,
  min(rank) AS rank,
  arg_min(seq, rank) AS seq,
  CASE WHEN bool_or(overflows) THEN 'communication' ELSE 'gap' END AS kind,
  'received' AS entry,
  arg_min(certainty, rank) AS certainty,
  arg_min(found, rank) AS found,
  arg_min(slots, rank) AS slots,
  arg_min(dtype, rank) AS dtype,
  CASE WHEN bool_or(in_backward) THEN 'backward' ELSE 'forward' END AS phase,
  arg_min(name, rank) AS name,
  arg_min(api, rank) AS api,
  NULL::VARCHAR AS module,
  instance,
  list({'rank': rank, 'seq': seq, 'call': name} ORDER BY rank) AS members,
  max(brought) AS brought,
  max(group_size) AS group_size
FROM communication_origins
GROUP BY step, instance
UNION ALL BY NAME
SELECT
  step, rank, seq, 'compute' AS kind, 'saturated' AS entry, 'order' AS certainty,
  ['saturated'] AS found, slots, dtype, phase, name, api, module, [] AS members
FROM saturations
WHERE step NOT IN (SELECT step FROM onsets)
