-- lib/is_weight_slot: whether an operation takes a model's weight, bias or running statistic in
-- this slot.
--
-- Positions are those of torch.nn.functional (docs.pytorch.org/docs/stable/nn.functional.html) and
-- its MindSpore and torch_npu counterparts; keywords speak for themselves.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO is_weight_slot(api, slot) AS
  list_contains(
    [
      'input.weight', 'input.bias', 'input.running_mean', 'input.running_var', 'input.gamma',
      'input.beta', 'input.in_proj_weight', 'input.in_proj_bias', 'input.out_proj_weight',
      'input.out_proj_bias'
    ],
    slot
  )
  OR list_contains(
    CASE
      WHEN list_contains(
        [
          'linear', 'dense', 'conv1d', 'conv2d', 'conv3d', 'conv_transpose1d', 'conv_transpose2d',
          'conv_transpose3d', 'npu_linear', 'npu_conv2d'
        ],
        api
      ) THEN ['input.1', 'input.2']
      WHEN list_contains(
        ['embedding', 'embedding_bag', 'prelu', 'npu_rms_norm', 'BiasAdd', 'bias_add'], api
      ) THEN ['input.1']
      WHEN api = 'bilinear' THEN ['input.2', 'input.3']
      WHEN list_contains(['layer_norm', 'group_norm', 'rms_norm', 'LayerNorm'], api)
        THEN ['input.1', 'input.2', 'input.3']
      WHEN list_contains(['batch_norm', 'instance_norm', 'BatchNorm'], api)
        THEN ['input.1', 'input.2', 'input.3', 'input.4']
      ELSE []
    END,
    slot
  )
