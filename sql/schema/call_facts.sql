-- schema/call_facts: one row per recorded call: what it is and where it stands.
--
-- Read once for all questions of a worker; stacks, which are most of a shard, stay on disk until a
-- question wants those of a few calls.
--
-- scope:   rank
-- reads:   calls   one row per call
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, api VARCHAR, phase VARCHAR,
--          kind VARCHAR, module VARCHAR, parent_seq BIGINT, args VARCHAR
SELECT step, rank, seq, name, api, phase, kind, module, parent_seq, args
FROM calls
