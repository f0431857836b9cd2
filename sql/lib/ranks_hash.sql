-- lib/ranks_hash: short for a list of ranks; NULL for none.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO ranks_hash(ranks) AS
  CASE WHEN ranks IS NOT NULL THEN hash(ranks) END
