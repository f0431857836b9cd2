-- lib/is_part: whether two shapes differ in a single dimension, of which one is a multiple of the
-- other: one tensor is a shard of what the other is as a whole.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO is_part(a, b) AS
  len(a) = len(b)
  AND len(list_filter(list_zip(a, b), lambda d: d[1] <> d[2])) = 1
  AND list_aggregate(a, 'product') > 0
  AND list_aggregate(b, 'product') > 0
  AND greatest(list_aggregate(a, 'product'), list_aggregate(b, 'product'))
    % least(list_aggregate(a, 'product'), list_aggregate(b, 'product')) = 0
