-- diff/call_keys: one row per call of one dump, with what a call of the other dump is paired by.
--
-- Names that a user says stand for others are replaced: of APIs, of modules by their whole path, of
-- children wherever they stand in one. `operation` is the path for a module, the name for a saved
-- variable. `site` is the line of the user's code. `late`: after the first backward call of the
-- step, so it may be a recomputation. `forward_seq`: the forward call that a backward call belongs
-- to, by name; NULL without one.
--
-- scope:   rank
-- uses:    lib/operation_key, lib/call_site, lib/plain_path, lib/forward_name
-- reads:   calls     one row per call
--          renamed   one row per name that stands for another one in the other dump
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, api VARCHAR, call_index BIGINT,
--          phase VARCHAR, kind VARCHAR, module VARCHAR, operation VARCHAR, site VARCHAR,
--          stack_id UBIGINT, micro_step BIGINT, late BOOLEAN, forward_seq BIGINT, args VARCHAR
WITH stacks AS (
  SELECT stack, hash(stack) AS stack_id, call_site(stack) AS site
  FROM (SELECT DISTINCT stack FROM calls)
),
children AS (
  SELECT coalesce(map_from_entries(list((theirs, ours))), MAP {}) AS names
  FROM renamed
  WHERE kind = 'child'
),
modules AS (
  SELECT
    m.module,
    coalesce(
      r.ours,
      array_to_string(
        [coalesce(c.names[part], part) FOR part IN string_split(plain_path(m.module), '.')], '.'
      )
    ) AS path
  FROM (SELECT DISTINCT module FROM calls) AS m
  CROSS JOIN children AS c
  LEFT JOIN renamed AS r ON r.kind = 'path' AND r.theirs = plain_path(m.module)
),
operations AS (
  SELECT a.api, operation_key(coalesce(r.ours, a.api)) AS operation
  FROM (SELECT DISTINCT api FROM calls) AS a
  LEFT JOIN renamed AS r ON r.kind = 'api' AND r.theirs = a.api
),
first_backward AS (
  SELECT step, min(seq) AS seq
  FROM calls
  WHERE phase = 'backward' AND name NOT LIKE '%.parameters\_grad%' ESCAPE '\'
  GROUP BY step
),
forwards AS (
  SELECT step, name, seq FROM calls WHERE phase = 'forward' AND kind <> 'saved'
)
SELECT
  c.step,
  c.rank,
  c.seq,
  c.name,
  c.api,
  c.call_index,
  CASE WHEN c.name LIKE '%.parameters\_grad%' ESCAPE '\' THEN 'gradient' ELSE c.phase END AS phase,
  c.kind,
  m.path AS module,
  CASE c.kind WHEN 'module' THEN m.path WHEN 'saved' THEN c.name ELSE o.operation END AS operation,
  s.site,
  s.stack_id,
  c.micro_step,
  coalesce(c.seq > b.seq, false) AS late,
  f.seq AS forward_seq,
  c.args
FROM calls AS c
LEFT JOIN stacks AS s ON s.stack = c.stack
LEFT JOIN modules AS m ON m.module = c.module
LEFT JOIN operations AS o ON o.api = c.api
LEFT JOIN first_backward AS b ON b.step = c.step
LEFT JOIN forwards AS f
  ON c.phase = 'backward' AND f.step = c.step AND f.name = forward_name(c.name)
