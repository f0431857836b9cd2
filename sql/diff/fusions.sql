-- diff/fusions: one row per sequence of operations that one framework runs where the other runs a
-- single one.
--
-- Operations are the words of lib/operation_key. Views, casts and questions about a shape may stand
-- anywhere between. Sequences: mindspore.ops.dense, mindspore.nn.Conv2d and mindspore.ops.addmm as
-- MindSpore 2.x runs them on its primitives; the others by the definition of the operation
-- (docs.pytorch.org/docs/stable/nn.functional.html).
--
-- scope:   rank
-- params:  none
-- returns: fused VARCHAR, parts VARCHAR[]
SELECT fused, parts
FROM (
  VALUES
    ('linear', ['matmul']),
    ('linear', ['matmul', 'biasadd']),
    ('linear', ['matmul', 'add']),
    ('addmm', ['matmul', 'add']),
    ('baddbmm', ['bmm', 'add']),
    ('conv1d', ['conv2d', 'biasadd']),
    ('conv1d', ['conv2d']),
    ('conv2d', ['conv2d', 'biasadd']),
    ('conv3d', ['conv3d', 'biasadd']),
    ('crossentropy', ['logsoftmax', 'nllloss']),
    ('logsoftmax', ['softmax', 'log']),
    ('silu', ['sigmoid', 'mul']),
    ('rmsnorm', ['pow', 'mean', 'add', 'rsqrt', 'mul', 'mul']),
    ('rmsnorm', ['square', 'mean', 'add', 'rsqrt', 'mul', 'mul']),
    ('mseloss', ['sub', 'square', 'mean'])
) AS known(fused, parts)
