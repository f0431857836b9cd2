-- schema/call_facts: one row per recorded call: what it is and whom it talks to, without its stack.
--
-- Read once for all questions of a worker: call stacks, which are most of a shard's text, stay on
-- disk.
--
-- scope:   rank
-- reads:   calls   one row per call
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, api VARCHAR, phase VARCHAR,
--          kind VARCHAR, module VARCHAR, parent_seq BIGINT, args VARCHAR, group_id VARCHAR,
--          group_ranks BIGINT[], group_seq BIGINT, peer BIGINT, root BIGINT, tag BIGINT,
--          reduce_op VARCHAR, async BOOLEAN
SELECT
  step,
  rank,
  seq,
  name,
  api,
  phase,
  kind,
  module,
  parent_seq,
  args,
  group_id,
  group_ranks,
  group_seq,
  peer,
  root,
  tag,
  reduce_op,
  "async"
FROM calls
