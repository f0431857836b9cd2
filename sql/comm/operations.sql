-- comm/operations: one row per communication operation of a rank, reduced to what other ranks need
-- to know.
--
-- A batch_isend_irecv record of msprobe holds several operations: each gives a row of its own
-- (`item`, from 0). `reads`, `fills`: it has an input it reads, a result it fills. `read_bad`,
-- `made_bad`: NaN or an infinity is in one. `parts`: how many tensors a list argument holds,
-- `bad_parts`: which of the results are bad; `ratio`: size of the larger side over the smaller;
-- both tell the size of a group whose ranks are not on record. `in_backward`: a backward call came
-- before it in the step.
--
-- scope:   rank
-- uses:    lib/ranks_hash
-- reads:   calls        one row per call
--          tensors      one row per tensor of a call
--          group_uses   one row per group that a rank's calls name, from comm/group_uses
-- params:  $nan_only BOOLEAN   look for NaN alone
-- returns: step BIGINT, rank BIGINT, seq BIGINT, item BIGINT, name VARCHAR, api VARCHAR,
--          group_id VARCHAR, ranks_hash UBIGINT, group_seq BIGINT, peer BIGINT, root BIGINT,
--          tag BIGINT, reduce_op VARCHAR, async BOOLEAN, sends BOOLEAN, reads BOOLEAN,
--          fills BOOLEAN, read_bad BOOLEAN, made_bad BOOLEAN, read_max DOUBLE, dtype VARCHAR,
--          shape BIGINT[], fill_shape BIGINT[], parts BIGINT, bad_parts BIGINT[], ratio BIGINT,
--          in_backward BOOLEAN
WITH comm AS MATERIALIZED (
  SELECT
    step, rank, seq, name, api, group_id, group_seq, peer, root, tag, reduce_op, "async", args,
    api = 'batch_isend_irecv' AS batch
  FROM calls
  WHERE kind = 'comm'
),
first_backward AS (
  SELECT step, rank, min(seq) AS seq
  FROM calls
  WHERE phase = 'backward'
  GROUP BY step, rank
),
ops AS (
  SELECT
    c.step, c.rank, c.seq, 0 AS item, c.name, c.api, c.group_id, g.ranks_hash, c.group_seq, c.peer,
    c.root, c.tag, c.reduce_op, c.async
  FROM comm AS c
  LEFT JOIN group_uses AS g
    ON g.step = c.step AND g.rank = c.rank
    AND g.group_id IS NOT DISTINCT FROM c.group_id
    AND g.of_seq IS NOT DISTINCT FROM CASE WHEN c.group_id IS NULL THEN c.seq END
  WHERE NOT c.batch
  UNION ALL
  SELECT
    c.step, c.rank, c.seq, split_part(j.key, '.', 3)::BIGINT, c.name, j.value ->> '$.op',
    j.value ->> '$.group_id', ranks_hash((j.value -> '$.group_ranks')::BIGINT[]), NULL,
    (j.value ->> '$.peer')::BIGINT, NULL, (j.value ->> '$.tag')::BIGINT, NULL, true
  FROM (SELECT * FROM comm WHERE batch) AS c, json_each(c.args) AS j
  WHERE json_exists(j.value, '$.class_type')
),
sides AS (
  SELECT
    t.step,
    t.rank,
    t.seq,
    CASE WHEN c.batch THEN try_cast(split_part(t.slot, '.', 3) AS BIGINT) ELSE 0 END AS item,
    t.direction <> 'output' AS is_read,
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
  FROM comm AS c
  JOIN tensors AS t USING (step, rank, seq)
  WHERE t.role = 'value' AND t.direction IN ('input', 'parameter', 'output')
),
by_item AS (
  SELECT
    step,
    rank,
    seq,
    item,
    bool_or(is_read) AS reads,
    bool_or(NOT is_read) AS fills,
    bool_or(bad AND is_read) AS read_bad,
    bool_or(bad AND NOT is_read) AS made_bad,
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
  o.ranks_hash,
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
  CASE
    WHEN b.read_numel > 0 AND b.fill_numel > 0
      THEN greatest(b.read_numel, b.fill_numel) // least(b.read_numel, b.fill_numel)
  END::BIGINT AS ratio,
  coalesce(f.seq < o.seq, false) AS in_backward
FROM ops AS o
LEFT JOIN by_item AS b USING (step, rank, seq, item)
LEFT JOIN first_backward AS f ON f.step = o.step AND f.rank = o.rank
ORDER BY o.step, o.rank, o.seq, o.item
