-- rl/pairs: one row per sample that both sides hold, numbered in order.
--
-- First by name and key; what is left of a group has no number and another response: it is joined
-- in its order. `padding` on a pair: no token of it counts on either side.
--
-- scope:   run
-- reads:   named_samples   one row per sample of either side, from rl/named_samples
-- params:  none
-- returns: pair BIGINT, step BIGINT, uid VARCHAR, sample BIGINT, padding BOOLEAN,
--          a_part BIGINT, a_rank BIGINT, a_micro BIGINT, a_place BIGINT,
--          b_part BIGINT, b_rank BIGINT, b_micro BIGINT, b_place BIGINT,
--          same_prompt BOOLEAN, same_text BOOLEAN, prompt UBIGINT
WITH listed AS MATERIALIZED (
  SELECT row_number() OVER () AS row, * FROM named_samples
),
first_pass AS (
  SELECT a.row AS a, b.row AS b
  FROM listed AS a
  JOIN listed AS b
    ON a.step = b.step AND a.name = b.name AND a.key = b.key AND a.turn = b.turn
  WHERE a.side = 'a' AND b.side = 'b' AND NOT a.padding AND NOT b.padding
),
rest AS (
  SELECT
    row, side, step, name,
    row_number() OVER (PARTITION BY side, step, name ORDER BY rank, micro, place) AS turn
  FROM listed
  WHERE NOT padding
    AND NOT numbered
    AND row NOT IN (SELECT a FROM first_pass UNION ALL SELECT b FROM first_pass)
),
second_pass AS (
  SELECT a.row AS a, b.row AS b
  FROM rest AS a
  JOIN rest AS b
    ON a.step = b.step AND a.name = b.name AND a.turn = b.turn
  WHERE a.side = 'a' AND b.side = 'b'
)
SELECT
  row_number() OVER (ORDER BY a.step, a.rank, a.micro, a.place, b.rank, b.micro, b.place) - 1
    AS pair,
  a.step AS step,
  a.uid AS uid,
  a.number AS sample,
  coalesce(a.counted = 0 AND b.counted = 0, false) AS padding,
  a.part AS a_part,
  a.rank AS a_rank,
  a.micro AS a_micro,
  a.place AS a_place,
  b.part AS b_part,
  b.rank AS b_rank,
  b.micro AS b_micro,
  b.place AS b_place,
  coalesce(a.prompt = b.prompt, a.prompt_text = b.prompt_text) AS same_prompt,
  a.response_text = b.response_text AS same_text,
  coalesce(a.prompt, a.prompt_text) AS prompt
FROM (FROM first_pass UNION ALL FROM second_pass) AS joined
JOIN listed AS a ON a.row = joined.a
JOIN listed AS b ON b.row = joined.b
ORDER BY pair
