-- checkpoint/differences: one row per pair of tensors: how they differ over all of their pieces.
--
-- A pair is compared in pieces of even size, wherever a worker was free. Sums add up, maxima and
-- first places are the extremes; a rounding explains the pair only if it explains every piece.
-- A pair of which a piece could not be read has its error; the sums of the rest mean nothing then.
--
-- scope:   run
-- reads:   pieces   one row per piece that was compared
-- params:  none
-- returns: pair BIGINT, numel BIGINT, unequal BIGINT, beyond BIGINT, bits_differ BOOLEAN,
--          aa DOUBLE, bb DOUBLE, dd DOUBLE, max_abs DOUBLE, max_rel DOUBLE, first_place BIGINT,
--          last_place BIGINT, nan_a BIGINT, nan_b BIGINT, inf_a BIGINT, inf_b BIGINT,
--          roundings BIGINT, unequal_rows BIGINT, error VARCHAR
SELECT
  pair,
  sum(numel)::BIGINT AS numel,
  sum(unequal)::BIGINT AS unequal,
  sum(beyond)::BIGINT AS beyond,
  bool_or(bits_differ) AS bits_differ,
  sum(aa) AS aa,
  sum(bb) AS bb,
  sum(dd) AS dd,
  max(max_abs) AS max_abs,
  max(max_rel) AS max_rel,
  min(first_place) AS first_place,
  max(last_place) AS last_place,
  sum(nan_a)::BIGINT AS nan_a,
  sum(nan_b)::BIGINT AS nan_b,
  sum(inf_a)::BIGINT AS inf_a,
  sum(inf_b)::BIGINT AS inf_b,
  bit_and(roundings) AS roundings,
  sum(unequal_rows)::BIGINT AS unequal_rows,
  min(error) AS error
FROM pieces
GROUP BY pair
