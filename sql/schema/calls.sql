-- schema/calls: one row per recorded call, of any schema version, in the types of the newest.
--
-- The files are read by name, so a column that an older part lacks, or that was all NULL when it
-- was written, is NULL here.
--
-- scope:   rank
-- reads:   call_files   the rows of all calls-*.parquet, with step and rank from the path
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, api VARCHAR, call_index BIGINT,
--          phase VARCHAR, kind VARCHAR, module VARCHAR, parent_seq BIGINT, stack VARCHAR,
--          micro_step BIGINT, recompute BOOLEAN, state VARCHAR, args VARCHAR, group_id VARCHAR,
--          group_ranks BIGINT[], group_seq BIGINT, peer BIGINT, root BIGINT, tag BIGINT,
--          reduce_op VARCHAR, async BOOLEAN
SELECT
  step::BIGINT AS step,
  rank::BIGINT AS rank,
  seq::BIGINT AS seq,
  name::VARCHAR AS name,
  api::VARCHAR AS api,
  call_index::BIGINT AS call_index,
  phase::VARCHAR AS phase,
  kind::VARCHAR AS kind,
  module::VARCHAR AS module,
  parent_seq::BIGINT AS parent_seq,
  stack::VARCHAR AS stack,
  micro_step::BIGINT AS micro_step,
  recompute::BOOLEAN AS recompute,
  state::VARCHAR AS state,
  args::VARCHAR AS args,
  group_id::VARCHAR AS group_id,
  group_ranks::BIGINT[] AS group_ranks,
  group_seq::BIGINT AS group_seq,
  peer::BIGINT AS peer,
  root::BIGINT AS root,
  tag::BIGINT AS tag,
  reduce_op::VARCHAR AS reduce_op,
  "async"::BOOLEAN AS "async"
FROM call_files
