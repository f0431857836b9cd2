-- diff/received: one row per communication call whose own inputs agree and whose result differs, of
-- which another member brought a value that differs: it came from there.
--
-- scope:   run
-- reads:   findings    one row per pair of calls with something to say, from diff/findings
--          instances   one row per operation of a rank with its instance, from comm/instances
-- params:  none
-- returns: step BIGINT, rank BIGINT, seq BIGINT, giver_rank BIGINT, giver_name VARCHAR
SELECT
  f.step,
  f.rank,
  f.seq,
  min(g.rank) AS giver_rank,
  arg_min(g.name, (g.rank, g.seq)) AS giver_name
FROM findings AS f
JOIN instances AS i ON i.step = f.step AND i.rank = f.rank AND i.seq = f.seq
JOIN instances AS o ON o.step = i.step AND o.instance = i.instance AND o.rank <> i.rank
JOIN findings AS g ON g.step = o.step AND g.rank = o.rank AND g.seq = o.seq
WHERE f.kind = 'comm'
  AND NOT f.is_input
  AND g.is_input
  AND g.status NOT IN ('requires_grad', 'recompute', 'drift', 'padding')
GROUP BY f.step, f.rank, f.seq
ORDER BY f.step, f.rank, f.seq
