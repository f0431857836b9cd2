-- lib/nonfinite_argument: whether a plain argument of a call is NaN or infinite: the caller asked
-- for it.
--
-- `args` is strict JSON: a non-finite number stands there as a word, beside its type.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO nonfinite_argument(args) AS
  coalesce(regexp_matches(args, '"type":\s*"float",\s*"value":\s*"[+-]?(inf|nan)"'), false)
