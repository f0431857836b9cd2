-- comm/operations: one row per communication operation of a rank, reduced to what other ranks need
-- to know.
--
-- A batch_isend_irecv record of msprobe holds several operations: each gives a row of its own
-- (`item`). `reads`, `fills`: it has an input it reads, a result it fills. `read_bad`, `made_bad`:
-- NaN or an infinity is in one. `parts`: how many tensors a list argument holds, `bad_parts`: which
-- of the results are bad; `ratio`: size of the larger side over the smaller: both tell the size of
-- a group whose ranks are not on record.
--
-- scope:   rank
-- reads:   call_facts     one row per call, from schema/call_facts
--          tensor_facts   one row per tensor of a call, from schema/tensor_facts
-- params:  $nan_only BOOLEAN   look for NaN alone
-- returns: step BIGINT, rank BIGINT, seq BIGINT, item VARCHAR, name VARCHAR, api VARCHAR,
--          group_id VARCHAR, group_ranks BIGINT[], group_seq BIGINT, peer BIGINT, root BIGINT,
--          tag BIGINT, reduce_op VARCHAR, async BOOLEAN, sends BOOLEAN, reads BOOLEAN,
--          fills BOOLEAN, read_bad BOOLEAN, made_bad BOOLEAN, read_max DOUBLE, dtype VARCHAR,
--          shape BIGINT[], fill_shape BIGINT[], parts BIGINT, bad_parts BIGINT[], ratio BIGINT
WITH batched AS (
  SELECT c.step, c.rank, c.seq, split_part(j.key, '.', 3) AS item, j.value AS op
  FROM call_facts AS c, json_each(c.args) AS j
  WHERE c.kind = 'comm' AND c.api = 'batch_isend_irecv' AND json_exists(j.value, '$.class_type')
),
ops AS (
  SELECT
    c.step, c.rank, c.seq, '' AS item, c.name, c.api, c.group_id, c.group_ranks, c.group_seq,
    c.peer, c.root, c.tag, c.reduce_op, c.async
  FROM call_facts AS c
  WHERE c.kind = 'comm' AND c.api <> 'batch_isend_irecv'
  UNION ALL
  SELECT
    c.step, c.rank, c.seq, b.item, c.name, b.op ->> '$.op', b.op ->> '$.group_id',
    (b.op -> '$.group_ranks')::BIGINT[], NULL, (b.op ->> '$.peer')::BIGINT, NULL,
    (b.op ->> '$.tag')::BIGINT, NULL, true
  FROM batched AS b
  JOIN call_facts AS c USING (step, rank, seq)
),
sides AS (
  SELECT
    t.step,
    t.rank,
    t.seq,
    CASE WHEN c.api = 'batch_isend_irecv' THEN split_part(t.slot, '.', 3) ELSE '' END AS item,
    t.direction = 'input' AS is_read,
    t.slot,
    -- the place in a list of tensors, one for each member of the group
    CASE
      WHEN c.api IN ('all_gather', 'gather', 'all_to_all')
        THEN try_cast(split_part(t.slot, '.', 3) AS BIGINT)
    END AS part,
    t.dtype,
    t.shape,
    t.numel,
    greatest(abs(t.max), abs(t.min)) AS magnitude,
    coalesce(t.has_nan, false)
      OR (NOT $nan_only AND coalesce(t.has_posinf OR t.has_neginf, false)) AS bad
  FROM call_facts AS c
  JOIN tensor_facts AS t USING (step, rank, seq)
  WHERE c.kind = 'comm' AND t.role = 'value' AND t.direction IN ('input', 'output')
),
by_item AS (
  SELECT
    step,
    rank,
    seq,
    item,
    coalesce(bool_or(is_read), false) AS reads,
    coalesce(bool_or(NOT is_read), false) AS fills,
    coalesce(bool_or(bad) FILTER (WHERE is_read), false) AS read_bad,
    coalesce(bool_or(bad) FILTER (WHERE NOT is_read), false) AS made_bad,
    max(magnitude) FILTER (WHERE is_read) AS read_max,
    min(dtype) AS dtype,
    arg_min(shape, slot) FILTER (WHERE is_read) AS shape,
    arg_min(shape, slot) FILTER (WHERE NOT is_read) AS fill_shape,
    greatest(count(*) FILTER (WHERE is_read), count(*) FILTER (WHERE NOT is_read)) AS parts,
    list(part ORDER BY part) FILTER (WHERE bad AND NOT is_read AND part IS NOT NULL) AS bad_parts,
    sum(numel) FILTER (WHERE is_read) AS read_numel,
    sum(numel) FILTER (WHERE NOT is_read) AS fill_numel
  FROM sides
  GROUP BY step, rank, seq, item
)
SELECT
  o.step,
  o.rank,
  o.seq,
  o.item,
  o.name,
  o.api,
  o.group_id,
  o.group_ranks,
  o.group_seq,
  o.peer,
  o.root,
  o.tag,
  o.reduce_op,
  o.async,
  coalesce(o.api LIKE '%send%', false) AS sends,
  coalesce(b.reads, false) AS reads,
  coalesce(b.fills, false) AS fills,
  coalesce(b.read_bad, false) AS read_bad,
  coalesce(b.made_bad, false) AS made_bad,
  b.read_max,
  b.dtype,
  b.shape,
  b.fill_shape,
  coalesce(b.parts, 0) AS parts,
  b.bad_parts,
  (greatest(b.read_numel, b.fill_numel) / nullif(least(b.read_numel, b.fill_numel), 0))::BIGINT
    AS ratio
FROM ops AS o
LEFT JOIN by_item AS b USING (step, rank, seq, item)
ORDER BY o.step, o.rank, o.seq, o.item
