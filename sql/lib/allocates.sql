-- lib/allocates: whether an operation only reserves memory, so that what its result holds means
-- nothing.
--
-- Our own collectors mark such a result as a buffer; a record of msprobe has only the name.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO allocates(api) AS
  list_contains(
    [
      'empty', 'empty_like', 'empty_strided', 'empty_permuted', 'empty_with_format', 'new_empty',
      'new_empty_strided', 'empty_quantized'
    ],
    api
  )
