-- diff/merged_parts: one row per tensor that ranks of the two dumps hold different parts of: what
-- the parts are together, on either side, and how far the two are apart.
--
-- Maximum and minimum are those of the parts, the mean is theirs, and the norm is the root of the
-- sum of squares, of which replicas of a part count once. The parts of the ranks that are held
-- against one and the same rank of the other dump are put together; where layouts say that those
-- are not the whole, or not the same piece of it, the parts of all ranks are.
--
-- `why` it is not comparable: partial (ranks hold terms of a sum), incomplete (not every part is
-- there), numbers (there are none). `replicas_differ`: of two that should be copies one is not.
-- `other_nonfinite`: only one side has NaN, or only one has inf or -inf, in any part.
--
-- scope:   run
-- uses:    lib/epsilon, lib/tolerance
-- reads:   parts   one row per pair of tensors of different parts, from diff/parts
-- params:  none
-- returns: step BIGINT, rank BIGINT, bench_rank BIGINT, seq BIGINT, bench_seq BIGINT, name VARCHAR,
--          bench_name VARCHAR, api VARCHAR, phase VARCHAR, kind VARCHAR, module VARCHAR,
--          slot VARCHAR, bench_slot VARCHAR, is_input BOOLEAN, weight BOOLEAN, dtype VARCHAR,
--          bench_dtype VARCHAR, shards BIGINT, comparable BOOLEAN, why VARCHAR,
--          replicas_differ BOOLEAN, other_nonfinite BOOLEAN, max DOUBLE, min DOUBLE,
--          mean DOUBLE, norm DOUBLE,
--          max_error DOUBLE, max_rel DOUBLE, tolerance DOUBLE, ratio DOUBLE
WITH sizes AS (
  SELECT count(DISTINCT bench_rank) <= count(DISTINCT rank) AS bench_fewer FROM parts
),
named AS (  -- `block`: the rank that the parts of others are held against
  SELECT
    p.*,
    CASE WHEN bench_fewer THEN bench_rank ELSE rank END AS block,
    CASE WHEN bench_fewer THEN bench_name ELSE name END AS of_name,
    CASE WHEN bench_fewer THEN bench_slot ELSE slot END AS of_slot,
    row_number() OVER (
      PARTITION BY step, rank, bench_rank, of_name, of_slot ORDER BY seq, bench_seq
    ) AS number
  FROM parts AS p
  CROSS JOIN sizes
),
counted AS (
  SELECT step, block, of_name, of_slot, number, count(DISTINCT rank) AS n,
    count(DISTINCT bench_rank) AS bench_n
  FROM named
  GROUP BY step, block, of_name, of_slot, number
),
gathered AS (
  SELECT
    p.* REPLACE (
      CASE
        WHEN coalesce(sharding, bench_sharding) IS NULL
          OR (n % shards = 0 AND bench_n % bench_shards = 0)
          OR (
            n * bench_shards = bench_n * shards
            AND regexp_full_match(sharding, 'S\d+/\d+')
            AND split_part(sharding, '/', 1) = split_part(bench_sharding, '/', 1)
          )
          THEN block
      END AS block
    )
  FROM named AS p
  JOIN counted USING (step, block, of_name, of_slot, number)
),
tensors AS (
  SELECT
    step,
    block,
    of_name,
    of_slot,
    number,
    min(rank) AS rank,
    min(bench_rank) AS bench_rank,
    arg_min(seq, (rank, bench_rank)) AS seq,
    arg_min(bench_seq, (rank, bench_rank)) AS bench_seq,
    arg_min(name, (rank, bench_rank)) AS name,
    arg_min(bench_name, (rank, bench_rank)) AS bench_name,
    any_value(api) AS api,
    any_value(phase) AS phase,
    any_value(kind) AS kind,
    any_value(module) AS module,
    min(slot) AS slot,
    min(bench_slot) AS bench_slot,
    bool_or(is_input) AS is_input,
    bool_or(weight) AS weight,
    any_value(dtype) AS dtype,
    any_value(bench_dtype) AS bench_dtype,
    any_value(size) AS size,
    bool_or(contains(concat(sharding, ' ', bench_sharding), 'P')) AS partial,
    max(shards) AS shards,
    max(bench_shards) AS bench_shards
  FROM gathered
  GROUP BY step, block, of_name, of_slot, number
),
held AS (  -- what each rank holds, once
  SELECT DISTINCT step, block, of_name, of_slot, number, 'target' AS side, rank AS holder, numel,
    max, min, mean, norm, nonfinite
  FROM gathered
  UNION ALL
  SELECT DISTINCT step, block, of_name, of_slot, number, 'bench', bench_rank, bench_numel,
    bench_max, bench_min, bench_mean, bench_norm, bench_nonfinite
  FROM gathered
),
sums AS (
  SELECT
    step,
    block,
    of_name,
    of_slot,
    number,
    side,
    count(*) AS holders,
    count(DISTINCT (max, min, norm)) AS kinds,
    max(max) AS max,
    min(min) AS min,
    sum(mean * numel) / sum(numel) AS mean,
    sum(norm * norm) / count(*) AS square,
    bit_or(nonfinite) AS nonfinite,
    sum(numel) AS numel
  FROM held
  GROUP BY step, block, of_name, of_slot, number, side
),
merged AS (
  SELECT
    t.* EXCLUDE (size),
    a.holders,
    t.block IS NOT NULL AND a.holders * t.bench_shards = b.holders * t.shards
      OR (a.holders % t.shards = 0 AND b.holders % t.bench_shards = 0) AS complete,
    a.kinds > t.shards OR b.kinds > t.bench_shards AS replicas_differ,
    -- parts of other sizes than most have another weight in the mean
    a.numel * t.shards = t.size * a.holders AND b.numel * t.bench_shards = t.size * b.holders
      AS even,
    t.size,
    (a.nonfinite <> b.nonfinite) IS TRUE AS other_nonfinite,
    a.max,
    a.min,
    a.mean,
    sqrt(a.square * t.shards) AS norm,
    b.max AS bench_max,
    b.min AS bench_min,
    b.mean AS bench_mean,
    sqrt(b.square * t.bench_shards) AS bench_norm,
    greatest(abs(a.max - b.max), abs(a.min - b.min)) AS max_error,
    greatest(abs(a.max), abs(a.min), abs(b.max), abs(b.min)) AS scale,
    greatest(tolerance(t.dtype), tolerance(t.bench_dtype)) AS tolerance
  FROM tensors AS t
  JOIN sums AS a
    ON a.step = t.step AND a.block IS NOT DISTINCT FROM t.block AND a.of_name = t.of_name
    AND a.of_slot = t.of_slot AND a.number = t.number AND a.side = 'target'
  JOIN sums AS b
    ON b.step = t.step AND b.block IS NOT DISTINCT FROM t.block AND b.of_name = t.of_name
    AND b.of_slot = t.of_slot AND b.number = t.number AND b.side = 'bench'
)
SELECT
  step,
  rank,
  bench_rank,
  seq,
  bench_seq,
  name,
  bench_name,
  api,
  phase,
  kind,
  module,
  slot,
  bench_slot,
  is_input,
  weight,
  dtype,
  bench_dtype,
  greatest(shards, bench_shards) AS shards,
  NOT partial AND complete AND max_error IS NOT NULL AS comparable,
  CASE
    WHEN partial THEN 'partial'
    WHEN NOT complete IS TRUE THEN 'incomplete'
    WHEN max_error IS NULL THEN 'numbers'
  END AS why,
  replicas_differ,
  other_nonfinite,
  max,
  min,
  mean,
  norm,
  max_error,
  CASE WHEN scale > 0 THEN max_error / scale END AS max_rel,
  tolerance,
  greatest(
    CASE WHEN max_error > 0 THEN max_error / (tolerance * scale) ELSE 0 END,
    CASE WHEN norm <> bench_norm
      THEN abs(norm - bench_norm) / (0.5 * tolerance * greatest(norm, bench_norm)) ELSE 0 END,
    CASE WHEN even AND mean <> bench_mean AND norm > 0
      THEN abs(mean - bench_mean) / (tolerance * norm / sqrt(size)) ELSE 0 END
  ) AS ratio
FROM merged
ORDER BY step, rank, bench_rank, seq, bench_seq, slot
