-- lib/tolerance: how far a value may be off, relative to the scale of its tensor, before rounding
-- no longer explains it; 0 for dtypes without rounding.
--
-- float32: 128 epsilon. Sums in another order and other implementations of one function stay below
-- 16 on real pairs of dumps; the smallest true difference seen on them, GELU by tanh against GELU
-- by erf, is 1,660. float64 too, but not below the half unit of float32 that a recorder may round
-- its statistics to. float16: 2 epsilon, bfloat16 and narrower: 1, as a recorder may round the
-- statistic itself to the dtype (msprobe does), half a unit on each side.
--
-- scope:   lib
-- uses:    lib/epsilon
CREATE OR REPLACE TEMP MACRO tolerance(dtype) AS
  coalesce(
    CASE dtype
      WHEN 'float64' THEN 1.1920928955078125e-07
      WHEN 'complex128' THEN 1.1920928955078125e-07
      WHEN 'float32' THEN 128 * epsilon(dtype)
      WHEN 'complex64' THEN 128 * epsilon(dtype)
      WHEN 'float16' THEN 2 * epsilon(dtype)
      ELSE epsilon(dtype)
    END,
    0
  )
