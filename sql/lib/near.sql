-- lib/near: whether two numbers agree to a given part of them.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO near(a, b, part) AS
  abs(a - b) <= part * greatest(abs(a), abs(b))
