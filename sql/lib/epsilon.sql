-- lib/epsilon: the distance from 1 to the next number of a floating dtype; NULL for others.
--
-- IEEE 754-2019 for the binary formats; bfloat16 after Intel's numerics definition (2018); the
-- 8-bit formats after the OCP specification (OFP8, 2023).
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO epsilon(dtype) AS
  CASE dtype
    WHEN 'float64' THEN 2.220446049250313e-16
    WHEN 'complex128' THEN 2.220446049250313e-16
    WHEN 'float32' THEN 1.1920928955078125e-07
    WHEN 'complex64' THEN 1.1920928955078125e-07
    WHEN 'float16' THEN 0.0009765625
    WHEN 'bfloat16' THEN 0.0078125
    WHEN 'float8_e4m3fn' THEN 0.125
    WHEN 'float8_e4m3fnuz' THEN 0.125
    WHEN 'float8_e5m2' THEN 0.25
    WHEN 'float8_e5m2fnuz' THEN 0.25
  END::DOUBLE
