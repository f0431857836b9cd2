-- lib/is_weight_slot: whether an operation takes a model's weight, bias or running statistic in
-- this slot.
--
-- Positions are those of torch.nn.functional (docs.pytorch.org/docs/stable/nn.functional.html) and
-- its MindSpore and torch_npu counterparts; keywords speak for themselves.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO is_weight_slot(api, slot) AS
  slot IN (
    'input.weight', 'input.bias', 'input.running_mean', 'input.running_var', 'input.gamma',
    'input.beta', 'input.in_proj_weight', 'input.in_proj_bias', 'input.out_proj_weight',
    'input.out_proj_bias'
  )
  OR CASE
    WHEN api IN (
      'linear', 'dense', 'bilinear', 'conv1d', 'conv2d', 'conv3d', 'conv_transpose1d',
      'conv_transpose2d', 'conv_transpose3d', 'npu_linear', 'npu_conv2d'
    ) THEN slot IN ('input.1', 'input.2')
    WHEN api IN ('embedding', 'embedding_bag', 'prelu', 'npu_rms_norm', 'BiasAdd', 'bias_add')
      THEN slot = 'input.1'
    WHEN api IN ('layer_norm', 'group_norm', 'rms_norm', 'LayerNorm')
      THEN slot IN ('input.1', 'input.2', 'input.3')
    WHEN api IN ('batch_norm', 'instance_norm', 'BatchNorm')
      THEN slot IN ('input.1', 'input.2', 'input.3', 'input.4')
    ELSE false
  END
