-- lib/is_floating: whether a dtype can hold NaN and infinities.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO is_floating(dtype) AS
  dtype LIKE '%float%' OR dtype LIKE 'complex%'
