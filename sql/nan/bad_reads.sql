-- nan/bad_reads: one row per read of a NaN or an infinity, with the call that made the value.
--
-- Where lineage is on record, the producer is known. Where it is not, it is the latest earlier call
-- of the rank and step with a result of equal statistics and size: views, casts and transposes may
-- be missing between the two. `source` says what was found:
--   made       a result that already held it
--   allocated  memory that had only been reserved
--   lost       its producer wrote finite values: something changed it without leaving a record
--   unmade     no call on record is known to have made it
--
-- scope:   rank
-- reads:   calls          one row per call
--          tensors        one row per tensor of a call
--          bad_tensors    one row per tensor read or made that holds NaN or an infinity, from
--                         nan/bad_tensors
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, slot VARCHAR, source VARCHAR,
--          producer_step BIGINT, producer_seq BIGINT, producer_likeness UBIGINT
WITH reads AS (
  SELECT * FROM bad_tensors WHERE is_read
),
results AS (
  SELECT * FROM bad_tensors WHERE NOT is_read
),
matched AS (
  SELECT
    r.step,
    r.rank,
    r.seq,
    r.slot,
    CASE
      WHEN p.seq IS NULL THEN 'unmade'
      WHEN p.allocated THEN 'allocated'
      ELSE 'made'
    END AS source,
    p.step AS producer_step,
    p.seq AS producer_seq,
    p.likeness AS producer_likeness
  FROM (SELECT * FROM reads WHERE value_id IS NULL) AS r
  ASOF LEFT JOIN results AS p
    ON p.likeness = r.likeness AND p.seq < r.seq
),
known AS (
  SELECT
    r.step,
    r.rank,
    r.seq,
    r.slot,
    CASE
      WHEN p.allocated THEN 'allocated'
      WHEN p.seq IS NOT NULL THEN 'made'
      WHEN w.has_nan = false THEN 'lost'
      ELSE 'unmade'
    END AS source,
    c.step AS producer_step,
    c.seq AS producer_seq,
    p.likeness AS producer_likeness
  FROM (SELECT * FROM reads WHERE value_id IS NOT NULL) AS r
  LEFT JOIN calls AS c
    ON c.rank = r.rank AND c.seq = r.producer_seq AND c.step <= r.step
  LEFT JOIN results AS p
    ON p.rank = r.rank AND p.step = c.step AND p.seq = c.seq AND p.slot = r.producer_slot
  LEFT JOIN tensors AS w
    ON w.rank = r.rank AND w.step = c.step AND w.seq = c.seq AND w.slot = r.producer_slot
)
SELECT * FROM matched
UNION ALL
SELECT * FROM known
