-- nan/known_starts: one row per origin on record and rank where its value is first: its own, or
-- every rank that got it out of the communication call it began in.
--
-- scope:   run
-- reads:   origins   one row per origin on record, from nan/origins
-- params:  none
-- returns: origin BIGINT, step BIGINT, rank BIGINT, seq BIGINT, name VARCHAR, received BOOLEAN
SELECT origin, step, rank, seq, name, false AS received
FROM origins
WHERE len(members) = 0
UNION ALL
SELECT o.origin, o.step, m.member.rank, m.member.seq, m.member.call, true
FROM origins AS o, unnest(o.members) AS m(member)
