-- lib/is_random: whether an operation draws from a random generator, so that equal inputs need not
-- give equal results.
--
-- torch (docs.pytorch.org/docs/stable/torch.html#random-sampling), torch.nn.functional dropout
-- functions, in-place sampling of Tensor, torch_npu and MindSpore counterparts. The key is that of
-- lib/operation_key.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO is_random(operation) AS
  regexp_full_match(
    operation,
    'rand|randn|randint|randperm|randlike|randnlike|randintlike|bernoulli|multinomial|poisson'
    || '|normal|uniform|random|exponential|geometric|cauchy|lognormal|binomial|rrelu'
    || '|standardnormal|standardlaplace|uniformint|uniformreal|truncnormal'
    || '|(npu)?(native|feature|alpha|featurealpha|fused)?dropout[123]?d?(gendmask|domask|ext|v2)?'
    || '|gumbelsoftmax|fractionalmaxpool[23]d|kaiminguniform|kaimingnormal|xavieruniform'
    || '|xaviernormal'
  )
