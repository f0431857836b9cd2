-- health/shards: one row per step and rank on record, with what could be read of it.
--
-- `judged` counts the tensors of which it is known whether they hold NaN or infinities: when there
-- are none, nothing can be said about the shard. `lineage`: it is on record which call made which
-- tensor. `fault`: a mistake of this program, which the driver puts here, not of what was read.
--
-- scope:   rank
-- reads:   shard_files    one row per step and rank whose files were found
--          calls          one row per call
--          tensors        one row per tensor of a call
-- params:  none
-- returns: step BIGINT, rank BIGINT, path VARCHAR, node VARCHAR, complete BOOLEAN, damage VARCHAR,
--          unfinished VARCHAR, calls BIGINT, tensors BIGINT, judged BIGINT, lineage BOOLEAN,
--          fault VARCHAR
WITH call_counts AS (
  SELECT step, rank, count(*) AS calls FROM calls GROUP BY step, rank
),
tensor_counts AS (
  SELECT
    step,
    rank,
    count(*) AS tensors,
    count(has_nan) AS judged,
    count(value_id) > 0 AS lineage
  FROM tensors
  GROUP BY step, rank
)
SELECT
  f.step,
  f.rank,
  f.path,
  f.node,
  f.complete,
  f.damage,
  f.unfinished,
  coalesce(c.calls, 0) AS calls,
  coalesce(t.tensors, 0) AS tensors,
  coalesce(t.judged, 0) AS judged,
  coalesce(t.lineage, false) AS lineage,
  NULL::VARCHAR AS fault
FROM shard_files AS f
LEFT JOIN call_counts AS c USING (step, rank)
LEFT JOIN tensor_counts AS t USING (step, rank)
ORDER BY f.step, f.rank
