-- nan/entry_tensors: one row per tensor in which a NaN or an infinity came into a rank's record.
--
--   birth          a result holds it, nothing that was read did
--   turned         an infinity that was asked for became something nobody asked for
--   saved          a variable the user saved holds it
--   received       a communication call gave it
--   import         it was read, and no call on record made it
--   lost           it was read, and its producer had written finite values
--   uninitialized  it was read from memory that had only been reserved
--   carried        it was made in an earlier step on record
--
-- `weight`: the tensor is a weight. Its slot says so, or a module's parameter of that size is bad
-- too, or it requires a gradient and is not shaped like the result, with as many dimensions and the
-- same first size, as a value in passing would be; an optimizer's result has its weight's shape.
--
-- scope:   rank
-- uses:    lib/is_weight_slot
-- reads:   calls          one row per call
--          tensors        one row per tensor of a call
--          bad_tensors    one row per tensor read or made that holds NaN or an infinity, from
--                         nan/bad_tensors
--          bad_calls      one row per call that reads or makes one, from nan/bad_calls
--          bad_reads      one row per read of one, with its producer, from nan/bad_reads
--          on_purpose     one row per call with an infinity that was asked for, from nan/on_purpose
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, entry VARCHAR, slot VARCHAR, nan BOOLEAN,
--          posinf BOOLEAN, neginf BOOLEAN, numel BIGINT, dtype VARCHAR, weight BOOLEAN
WITH bad_parameters AS (
  SELECT DISTINCT step, rank, numel
  FROM tensors
  WHERE direction = 'parameter' AND (has_nan OR has_posinf OR has_neginf)
),
made AS (
  SELECT
    t.*,
    CASE
      WHEN b.kind = 'comm' THEN 'received'
      WHEN b.kind = 'saved' THEN 'saved'
      WHEN p.manner = 'turned' THEN 'turned'
      ELSE 'birth'
    END AS entry
  FROM bad_tensors AS t
  JOIN bad_calls AS b USING (step, rank, seq)
  LEFT JOIN on_purpose AS p USING (step, rank, seq)
  WHERE NOT t.is_read AND NOT t.allocated
    AND (b.kind IN ('comm', 'saved') OR NOT b.reads_bad OR p.manner = 'turned')
),
read AS (
  SELECT
    t.*,
    CASE r.source
      WHEN 'allocated' THEN 'uninitialized'
      WHEN 'lost' THEN 'lost'
      WHEN 'made' THEN 'carried'
      ELSE 'import'
    END AS entry
  FROM (SELECT * FROM bad_reads WHERE source <> 'made' OR producer_step < step) AS r
  JOIN bad_tensors AS t USING (step, rank, seq, slot)
  WHERE t.is_read
),
like_results AS (
  SELECT DISTINCT r.step, r.rank, r.seq, r.slot
  FROM (SELECT * FROM read WHERE requires_grad) AS r
  JOIN tensors AS i USING (step, rank, seq, slot)
  JOIN tensors AS o ON o.step = r.step AND o.rank = r.rank AND o.seq = r.seq
  WHERE o.direction = 'output' AND len(o.shape) = len(i.shape)
    AND o.shape[1] IS NOT DISTINCT FROM i.shape[1]
)
SELECT step, rank, seq, entry, slot, nan, posinf, neginf, numel, dtype, false AS weight
FROM made
UNION ALL
SELECT
  r.step,
  r.rank,
  r.seq,
  r.entry,
  r.slot,
  r.nan,
  r.posinf,
  r.neginf,
  r.numel,
  r.dtype,
  r.is_parameter
    OR coalesce(is_weight_slot(c.api, r.slot), false)
    OR p.rank IS NOT NULL
    OR coalesce(r.requires_grad AND (coalesce(c.phase, '') = 'optimizer' OR m.seq IS NULL), false)
FROM read AS r
JOIN calls AS c USING (step, rank, seq)
LEFT JOIN bad_parameters AS p USING (step, rank, numel)
LEFT JOIN like_results AS m USING (step, rank, seq, slot)
