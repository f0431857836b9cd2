-- lib/operation_key: what an operation computes, in one word for all frameworks and spellings:
-- `__add__`, `add_` and `Add` are `add`; MindSpore's Dense is PyTorch's linear.
--
-- A reflected operation (`__radd__`) stays its own: its arguments stand the other way round. Pairs
-- of names: MindSpore, "PyTorch and MindSpore API Mapping Table"
-- (mindspore.cn/docs/en/master/note/api_mapping/pytorch_api_mapping.html).
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO operation_key(api) AS
  CASE replace(lower(trim(api, '_')), '_', '')
    WHEN 'dense' THEN 'linear'
    WHEN 'concat' THEN 'cat'
    WHEN 'swapaxes' THEN 'transpose'
    WHEN 'swapdims' THEN 'transpose'
    WHEN 'reducemean' THEN 'mean'
    WHEN 'reducesum' THEN 'sum'
    WHEN 'reducemax' THEN 'amax'
    WHEN 'reducemin' THEN 'amin'
    WHEN 'div' THEN 'truediv'
    WHEN 'realdiv' THEN 'truediv'
    WHEN 'batchmatmul' THEN 'bmm'
    WHEN 'expanddims' THEN 'unsqueeze'
    WHEN 'broadcastto' THEN 'expand'
    WHEN 'powtensor' THEN 'pow'
    WHEN 'batchnormext' THEN 'batchnorm'
    WHEN 'layernormext' THEN 'layernorm'
    WHEN 'softmaxcrossentropywithlogits' THEN 'crossentropy'
    WHEN 'allgatherintotensor' THEN 'allgatherbase'
    WHEN 'reducescattertensor' THEN 'reducescatterbase'
    ELSE replace(lower(trim(api, '_')), '_', '')
  END
