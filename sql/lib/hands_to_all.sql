-- lib/hands_to_all: whether a collective puts what any member brings into the result of every
-- member, so that one NaN brought is a NaN received by all. A maximum or minimum may drop it; a
-- scatter or an exchange hands each member only its own part.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO hands_to_all(api, reduce_op) AS
  api IN ('broadcast', 'all_gather', 'all_gather_into_tensor', '_all_gather_base')
  OR (
    api = 'all_reduce'
    AND coalesce(reduce_op, 'SUM') IN ('SUM', 'AVG', 'PREMUL_SUM', 'PRODUCT', 'PROD')
  )
