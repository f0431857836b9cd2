-- lib/ignores_values: whether an operation leaves the values of its first tensor unread: it takes
-- only the shape of it, or overwrites it.
--
-- What such a tensor holds can neither be the cause of the result nor be carried on by it.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO ignores_values(api) AS
  list_contains(
    [
      'zeros_like', 'ones_like', 'full_like', 'rand_like', 'randn_like', 'randint_like',
      'empty_like', 'new_zeros', 'new_ones', 'new_full', 'new_empty', 'new_empty_strided',
      'new_tensor', 'zero_', 'fill_', 'copy_', 'normal_', 'uniform_', 'random_', 'bernoulli_',
      'exponential_', 'geometric_', 'log_normal_', 'cauchy_', 'eye_', 'set_', 'size', 'numel', 'dim'
    ],
    api
  )
