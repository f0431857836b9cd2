-- lib/is_view: whether an operation only shows its tensor in another form, or asks for one: what it
-- makes holds the numbers of what it reads. The key is that of lib/operation_key.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO is_view(operation) AS
  list_contains(
    [
      'reshape', 'view', 'viewas', 'flatten', 'unflatten', 'squeeze', 'unsqueeze', 'transpose',
      'permute', 't', 'expand', 'contiguous', 'identity', 'to', 'cast', 'type', 'float', 'half',
      'bfloat16', 'shape', 'size', 'dim', 'rank'
    ],
    operation
  )
