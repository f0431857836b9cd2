-- diff/tensor_pairs: one row per pair of tensors of paired calls: how far they are apart, as
-- multiples of what rounding allows (1 is the limit).
--
-- The tolerance is that of the coarser dtype of the two or, where values already differ, of the
-- coarsest that they have come through on this rank: a float32 sum of bfloat16 values is no more
-- exact than they are. A weight that comes from outside of the step has come through nothing.
-- Maximum and minimum are held against the scale of the tensor, the mean against its root mean
-- square (against itself it would be a ratio of two cancellations), the norm against itself. Below
-- the floor nothing is a difference: `noise`, which further runs of the same code give; 2^-75,
-- whose square float32 cannot hold; a rounding error of a typical number, and of a sum of many of
-- them in the backward pass, where a gradient that should be zero is nothing but that. Equal
-- checksums mean equal, whatever else is recorded; different ones decide where no number is.
-- Integers and booleans must be equal. NULL flags and NULL numbers say nothing. `judged` is false
-- for memory that is only reserved, for all but weights where both sides are ranks of one run, and
-- where nothing can be held against each other: a shard against a whole or against another shard
-- (`part`), what a call made of shards, which may have to be summed up first, and what the steps
-- of a sequence read that one call stands for.
--
-- A tensor that is longer in one dimension is the other with padding where the elements that both
-- have agree or, of statistics, where all that it has more is zero.
--
-- `kind`: what is wrong first: dtype, shape, nonfinite, value; NULL when nothing is. `agreement`:
-- how two tensors agree of which nothing is wrong: bits (all are equal), statistics (they are
-- equal, and nothing else is on record), nonfinite (equal, and both hold NaN or infinities),
-- other_bits (equal numbers, and other bits: -0.0, the payload of a NaN), noise (below the floor),
-- rounding (within the tolerance, also that of sums in another order), padding.
--
-- scope:   rank
-- uses:    lib/is_floating, lib/epsilon, lib/tolerance, lib/is_weight_slot, lib/allocates,
--          lib/is_part, lib/one_longer
-- reads:   call_pairs       one row per pair of calls, from diff/call_pairs
--          bench_tensors    one row per tensor of the benchmark
--          target_tensors   one row per tensor of the target
--          typical_sizes    one row per phase, from diff/typical_sizes
--          noise            one row per tensor of the benchmark that further runs of it also have
--          real_errors      one row per pair of tensors whose elements are on record
-- params:  $cross BOOLEAN   the dumps are of two frameworks
--          $split BOOLEAN   the dumps have different numbers of ranks
--          $strict BOOLEAN   every bit must be equal
--          $replicas BOOLEAN   both sides are ranks of one run
-- returns: step BIGINT, rank BIGINT, bench_seq BIGINT, target_seq BIGINT, slot VARCHAR,
--          bench_slot VARCHAR, is_input BOOLEAN, weight BOOLEAN, part BOOLEAN, judged BOOLEAN,
--          kind VARCHAR, agreement VARCHAR,
--          max_ratio DOUBLE, mean_ratio DOUBLE, norm_ratio DOUBLE, ratio DOUBLE, tolerance DOUBLE,
--          max_error DOUBLE, max_rel DOUBLE, same_bits BOOLEAN, both_nonfinite BOOLEAN,
--          other_grad BOOLEAN, numel BIGINT,
--          dtype VARCHAR, bench_dtype VARCHAR
WITH of_shards AS (
  SELECT DISTINCT p.step, p.target_seq, p.bench_seq
  FROM call_pairs AS p
  JOIN target_tensors AS t ON t.step = p.step AND t.seq = p.target_seq
  JOIN bench_tensors AS b ON b.step = p.step AND b.seq = p.bench_seq AND b.key = t.key
  WHERE $split AND t.direction <> 'output' AND is_part(t.shape, b.shape)
),
unsummed AS (  -- and where it is handed on
  SELECT DISTINCT t.step, t.numel, t.max, t.min, t.norm
  FROM of_shards AS s
  JOIN target_tensors AS t ON t.step = s.step AND t.seq = s.target_seq
  WHERE t.direction = 'output'
),
paired AS (
  SELECT
    p.step,
    p.rank,
    p.bench_seq,
    p.target_seq,
    t.slot,
    b.slot AS bench_slot,
    t.direction <> 'output' AS is_input,
    t.direction = 'parameter' OR b.direction = 'parameter' OR is_weight_slot(p.api, t.slot)
      AS weight,
    t.role = 'value'
      AND b.role = 'value'
      AND NOT (t.direction = 'output' AND allocates(p.api))
      -- the nodes of the graph are the framework's own, and change with the dtypes
      AND NOT (
        t.direction = 'output'
        AND p.phase = 'backward'
        AND p.kind <> 'module'
        AND ($cross OR t.shape <> b.shape)
      )
      -- of a sequence only the result is what the single call makes
      AND (p.how IS DISTINCT FROM 'fused' OR (t.direction = 'output') = (p.phase = 'forward'))
      AND NOT (
        $split
        AND ((t.direction = 'output' AND s.target_seq IS NOT NULL) OR u.norm IS NOT NULL)
      )
      AS comparable,
    t.sharding IS DISTINCT FROM b.sharding
      OR ($split AND (t.sharding IS NOT NULL OR (t.shape <> b.shape AND is_part(t.shape, b.shape))))
      AS part,
    t.numel,
    t.dtype,
    b.dtype AS bench_dtype,
    CASE
      WHEN $cross AND regexp_matches(t.dtype, '^u?int') AND regexp_matches(b.dtype, '^u?int')
        THEN false
      ELSE t.dtype <> b.dtype
    END AS other_dtype,
    t.shape <> b.shape AS other_shape,
    NOT ($cross OR $strict) AND t.shape <> b.shape AND one_longer(t.shape, b.shape) AS longer,
    CASE WHEN longer THEN greatest(
      abs(greatest(t.max, 0) - greatest(b.max, 0)), abs(least(t.min, 0) - least(b.min, 0))
    ) END AS reach_error,
    CASE WHEN longer THEN abs(t.mean * t.numel - b.mean * b.numel) END AS sum_error,
    (t.has_nan <> b.has_nan) IS TRUE
      OR (t.has_posinf <> b.has_posinf) IS TRUE
      OR (t.has_neginf <> b.has_neginf) IS TRUE
      OR coalesce(r.other_nonfinite, false) AS other_nonfinite,
    (
      (t.has_nan OR t.has_posinf OR t.has_neginf) AND (b.has_nan OR b.has_posinf OR b.has_neginf)
    ) IS TRUE AS both_nonfinite,
    t.checksum = b.checksum AS same_bits,
    coalesce(t.checksum <> b.checksum OR r.other_bits, false) AS other_bits,
    r.max_abs IS NOT NULL AS by_elements,
    (t.requires_grad <> b.requires_grad) IS TRUE AS other_grad,
    is_floating(t.dtype) AND is_floating(b.dtype) AS floating,
    greatest(tolerance(t.dtype), tolerance(b.dtype)) AS own_tolerance,
    p.phase,
    coalesce(z.size, 0) AS size,
    abs(t.mean - b.mean) AS mean_error,
    CASE WHEN isfinite(t.norm) AND isfinite(b.norm) THEN abs(t.norm - b.norm) END AS norm_error,
    CASE WHEN isfinite(t.norm) AND isfinite(b.norm) THEN greatest(t.norm, b.norm) END AS norm,
    coalesce(n.max_error, 0) AS max_noise,
    coalesce(n.mean_error, 0) AS mean_noise,
    coalesce(n.norm_error, 0) AS norm_noise,
    coalesce(r.max_abs, greatest(abs(t.max - b.max), abs(t.min - b.min))) AS worst,
    coalesce(r.scale, greatest(abs(t.max), abs(t.min), abs(b.max), abs(b.min))) AS scale
  FROM call_pairs AS p
  JOIN target_tensors AS t ON t.step = p.step AND t.seq = p.target_seq
  JOIN bench_tensors AS b ON b.step = p.step AND b.seq = p.bench_seq AND b.key = t.key
  LEFT JOIN of_shards AS s
    ON s.step = p.step AND s.target_seq = p.target_seq AND s.bench_seq = p.bench_seq
  LEFT JOIN unsummed AS u
    ON u.step = t.step AND u.numel = t.numel AND u.max = t.max AND u.min = t.min
    AND u.norm = t.norm
  LEFT JOIN typical_sizes AS z ON z.step = p.step AND z.phase IS NOT DISTINCT FROM p.phase
  LEFT JOIN noise AS n ON n.step = p.step AND n.bench_seq = p.bench_seq AND n.slot = b.slot
  LEFT JOIN real_errors AS r
    ON r.step = p.step AND r.bench_seq = p.bench_seq AND r.target_seq = p.target_seq
    AND r.slot = t.slot
),
joined AS (
  SELECT * REPLACE (comparable AND NOT part AND NOT ($replicas AND NOT weight) AS comparable)
  FROM paired
),
compared AS (
  SELECT *, coalesce(greatest(worst, mean_error, norm_error) > 0, false) AS moved FROM joined
),
levels AS (  -- from which call on values have come through which precision
  SELECT list({'tolerance': tolerance, 'place': place}) AS levels, min(place.step) AS step
  FROM (
    SELECT own_tolerance AS tolerance, min({'step': step, 'seq': target_seq}) AS place
    FROM compared
    WHERE comparable AND floating AND (other_dtype OR moved)
    GROUP BY own_tolerance
  )
),
tolerated AS (
  SELECT
    j.*,
    CASE
      WHEN NOT j.moved OR (j.weight AND j.step = l.step) THEN j.own_tolerance
      ELSE greatest(
        j.own_tolerance,
        list_max([
          level.tolerance
          FOR level IN l.levels
          IF level.place <= {'step': j.step, 'seq': j.target_seq}
        ])
      )
    END AS grain
  FROM compared AS j
  CROSS JOIN levels AS l
),
measured AS (
  SELECT
    *,
    grain * CASE
      WHEN grain <= tolerance('float32') THEN 1
      WHEN phase = 'backward' THEN 4
      ELSE 1
    END AS tolerance,
    -- what single elements lose adds up on the way; the norm hardly moves
    CASE
      WHEN weight OR phase = 'backward' OR grain <= tolerance('float32') THEN 1 ELSE 2
    END AS way,
    greatest(
      power(2::DOUBLE, -75),
      CASE
        WHEN weight THEN 0
        WHEN phase <> 'backward' THEN epsilon('float32') * size
        WHEN grain > tolerance('float32') THEN 4 * grain * size
        ELSE 16 * epsilon('float32') * size
      END
    ) AS floor,
    norm / sqrt(numel) AS rms
  FROM tolerated
),
in_tolerances AS (
  SELECT
    *,
    (
      longer
      AND reach_error <= tolerance * scale
      AND sum_error <= tolerance * norm * sqrt(numel)
      AND norm_error <= 0.5 * tolerance * norm
    ) IS TRUE AS zero_padded,
    CASE
      WHEN same_bits THEN 0
      WHEN $strict AND same_bits IS NOT NULL THEN 'inf'
      WHEN worst = 0 THEN 0
      WHEN NOT floating OR $strict THEN 'inf'
      ELSE greatest(worst - greatest(floor, max_noise), 0) / (way * tolerance * scale)
    END::DOUBLE AS max_ratio,
    CASE
      WHEN same_bits OR NOT floating OR other_shape OR numel < 2 OR coalesce(mean_error, 0) = 0
        THEN 0
      WHEN $strict THEN 'inf'
      ELSE greatest(mean_error - greatest(floor, mean_noise), 0) / (tolerance * rms)
    END::DOUBLE AS mean_ratio,
    CASE
      WHEN same_bits OR NOT floating OR other_shape OR coalesce(norm_error, 0) = 0 THEN 0
      WHEN $strict THEN 'inf'
      -- the errors of single elements average out in it
      ELSE greatest(norm_error - greatest(floor * sqrt(numel), norm_noise), 0)
        / (0.5 * tolerance * norm)
    END::DOUBLE AS norm_ratio
  FROM measured
),
judged AS (
  SELECT
    *,
    comparable AND (worst IS NOT NULL OR same_bits IS NOT NULL OR both_nonfinite) AS judged,
    zero_padded OR (longer AND by_elements AND max_ratio <= 1) AS padded,
    worst IS NULL AND NOT both_nonfinite AND NOT same_bits AS other_checksum,
    greatest(max_ratio, mean_ratio, norm_ratio) AS ratio
  FROM in_tolerances
),
told AS (
  SELECT
    *,
    CASE
      WHEN NOT comparable THEN NULL
      WHEN other_dtype THEN 'dtype'
      WHEN other_shape AND NOT padded THEN 'shape'
      WHEN other_nonfinite THEN 'nonfinite'
      WHEN padded THEN NULL
      WHEN ratio > 1 OR other_checksum THEN 'value'
    END AS kind
  FROM judged
)
SELECT
  step,
  rank,
  bench_seq,
  target_seq,
  slot,
  bench_slot,
  is_input,
  weight,
  part,
  judged,
  kind,
  CASE
    WHEN NOT judged OR kind IS NOT NULL THEN NULL
    WHEN padded THEN 'padding'
    WHEN moved AND NOT same_bits IS TRUE THEN CASE WHEN ratio > 0 THEN 'rounding' ELSE 'noise' END
    WHEN other_bits THEN 'other_bits'
    WHEN both_nonfinite THEN 'nonfinite'
    WHEN same_bits OR by_elements THEN 'bits'
    ELSE 'statistics'
  END AS agreement,
  max_ratio,
  mean_ratio,
  norm_ratio,
  CASE
    WHEN other_shape THEN NULL
    WHEN other_checksum THEN 'inf'
    ELSE ratio
  END::DOUBLE AS ratio,
  tolerance,
  worst AS max_error,
  -- what is below the floor is no error, however small the numbers are that it is relative to
  CASE WHEN worst <= floor THEN 0 WHEN scale > 0 THEN worst / scale END AS max_rel,
  same_bits,
  both_nonfinite,
  other_grad,
  numel,
  dtype,
  bench_dtype
FROM told
ORDER BY step, rank, target_seq, bench_seq, slot
