-- diff/argument_pairs: one row per pair of calls with another plain argument, and the first such.
--
-- Only what a user writes counts: numbers, texts, truth values, shapes, dtypes. A device, a process
-- group, a function or a generator is another object on another machine. An argument that one side
-- does not have says nothing: it may be a default. Between two frameworks arguments stand in other
-- places and are not compared, between replicas they may be numbers that come of the data.
--
-- scope:   rank
-- reads:   call_pairs     one row per pair of calls, from diff/call_pairs
--          bench_calls    one row per call of the benchmark
--          target_calls   one row per call of the target
-- params:  $cross BOOLEAN      the dumps are of two frameworks
--          $replicas BOOLEAN   both sides are ranks of one run
-- returns: step BIGINT, bench_seq BIGINT, target_seq BIGINT, slot VARCHAR, bench_value VARCHAR,
--          value VARCHAR
WITH changed AS (
  SELECT p.step, p.bench_seq, p.target_seq, b.args AS bench_args, t.args AS args
  FROM call_pairs AS p
  JOIN bench_calls AS b ON b.step = p.step AND b.seq = p.bench_seq
  JOIN target_calls AS t ON t.step = p.step AND t.seq = p.target_seq
  WHERE NOT $cross AND NOT $replicas AND p.kind <> 'comm' AND b.args <> t.args
),
target_items AS (
  SELECT c.step, c.bench_seq, c.target_seq, j.key AS slot, j.value
  FROM changed AS c, json_each(c.args) AS j
),
bench_items AS (
  SELECT c.step, c.bench_seq, c.target_seq, j.key AS slot, j.value
  FROM changed AS c, json_each(c.bench_args) AS j
)
SELECT
  t.step,
  t.bench_seq,
  t.target_seq,
  t.slot,
  coalesce(b.value ->> '$.value', b.value::VARCHAR) AS bench_value,
  coalesce(t.value ->> '$.value', t.value::VARCHAR) AS value
FROM target_items AS t
JOIN bench_items AS b USING (step, bench_seq, target_seq, slot)
WHERE coalesce(b.value -> '$.value', b.value) <> coalesce(t.value -> '$.value', t.value)
  AND list_contains(
    ['int', 'float', 'bool', 'str', 'torch.dtype', 'mindspore.dtype', 'torch.Size', 'slice'],
    coalesce(t.value ->> '$.type', '')
  )
  AND NOT regexp_matches(concat(b.value ->> '$.value', t.value ->> '$.value'), '0x|cuda|npu')
QUALIFY row_number() OVER (PARTITION BY t.step, t.bench_seq, t.target_seq ORDER BY t.slot) = 1
