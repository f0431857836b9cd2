-- lib/plain_path: the path of a module without what wrappers put into it: DistributedDataParallel
-- (`module`), torch.compile (`_orig_mod`), FSDP, activation checkpointing, a pipeline's
-- `_backbone`.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO plain_path(path) AS
  array_to_string(
    list_filter(
      string_split(path, '.'),
      lambda part: NOT list_contains(
        [
          'module', '_orig_mod', '_fsdp_wrapped_module', '_checkpoint_wrapped_module',
          '_forward_module', '_backbone'
        ],
        part
      )
    ),
    '.'
  )
