-- lib/is_floating: whether a dtype can hold NaN and infinities; the 4-bit formats cannot.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO is_floating(dtype) AS
  (dtype LIKE '%float%' AND dtype NOT LIKE 'float4%') OR dtype LIKE 'complex%'
