-- lib/one_longer: whether two shapes differ in a single dimension: one tensor may be the other with
-- padding.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO one_longer(a, b) AS
  len(a) = len(b) AND len(list_filter(list_zip(a, b), lambda d: d[1] <> d[2])) = 1
