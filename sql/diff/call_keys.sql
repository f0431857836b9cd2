-- diff/call_keys: one row per call of one dump, with what a call of the other dump is paired by.
--
-- `operation` is the path for a module, the name for a saved variable. `site` is the line of the
-- user's code. `late`: after the first backward call of the step, so it may be a recomputation.
-- `forward_seq`: the forward call that a backward call belongs to, by name; NULL without one.
--
-- scope:   rank
-- uses:    lib/operation_key, lib/call_site, lib/plain_path, lib/forward_name
-- reads:   calls   one row per call
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, api VARCHAR, call_index BIGINT,
--          phase VARCHAR, kind VARCHAR, module VARCHAR, operation VARCHAR, site VARCHAR,
--          stack_id UBIGINT, micro_step BIGINT, late BOOLEAN, forward_seq BIGINT, args VARCHAR
WITH stacks AS (
  SELECT stack, hash(stack) AS stack_id, call_site(stack) AS site
  FROM (SELECT DISTINCT stack FROM calls)
),
modules AS (
  SELECT module, plain_path(module) AS path
  FROM (SELECT DISTINCT module FROM calls)
),
operations AS (
  SELECT api, operation_key(api) AS operation FROM (SELECT DISTINCT api FROM calls)
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
