-- lib/near: whether two numbers agree to four digits, which tells values apart that have nothing to
-- do with one another, and no more.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO near(a, b) AS
  abs(a - b) <= 1e-4 * greatest(abs(a), abs(b))
