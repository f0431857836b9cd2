-- lib/parameter_key: the slot of a parameter or its gradient under the name that PyTorch has for
-- it; MindSpore says gamma, beta and embedding_table.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO parameter_key(slot) AS
  CASE
    WHEN slot LIKE '%.gamma' THEN concat(slot[:-6], 'weight')
    WHEN slot LIKE '%.beta' THEN concat(slot[:-5], 'bias')
    WHEN slot LIKE '%.embedding_table' THEN concat(slot[:-16], 'weight')
    WHEN slot LIKE '%.moving_mean' THEN concat(slot[:-12], 'running_mean')
    WHEN slot LIKE '%.moving_variance' THEN concat(slot[:-16], 'running_var')
    ELSE slot
  END
