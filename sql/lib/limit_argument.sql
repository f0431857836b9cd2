-- lib/limit_argument: whether a plain argument of a call stands at the largest finite value of a
-- dtype, or beyond it: the caller asked for saturation (torch.finfo(dtype).min as a mask).
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO limit_argument(args, dtype_max) AS
  coalesce(
    list_max([
      abs(try_cast(number AS DOUBLE))
      FOR number IN regexp_extract_all(args, '"value":\s*(-?[0-9.]+(?:[eE][+-]?[0-9]+)?)', 1)
    ]) >= dtype_max,
    false
  )
