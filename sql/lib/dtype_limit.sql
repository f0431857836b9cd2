-- lib/dtype_limit: the largest finite value of a dtype; NULL for one that has none or is not known.
--
-- IEEE 754-2019 for the binary formats; bfloat16 after Intel's numerics definition; the 8-bit
-- formats after the OCP specification (OFP8, 2023). Integers cannot overflow into an infinity.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO dtype_limit(dtype) AS
  CASE dtype
    WHEN 'float16' THEN 65504.0
    WHEN 'bfloat16' THEN 3.3895313892515355e38
    WHEN 'float32' THEN 3.4028234663852886e38
    WHEN 'float64' THEN 1.7976931348623157e308
    WHEN 'float8_e4m3fn' THEN 448.0
    WHEN 'float8_e5m2' THEN 57344.0
  END::DOUBLE
