-- checkpoint/opaque: one row per entry that is no tensor and differs: numbers, text, extra state.
--
-- Weights are judged without them. What is on one side only is no finding: another writer.
--
-- scope:   run
-- reads:   entries_a   one row per such entry of A
--          entries_b   one row per such entry of B
-- params:  none
-- returns: name VARCHAR, kind VARCHAR, hint VARCHAR
SELECT
  a.name,
  a.kind,
  CASE
    WHEN a.kind = 'value' THEN format('{} against {}; not a tensor', a.content, b.content)
    ELSE 'its bytes differ; it was not looked into'
  END AS hint
FROM entries_a AS a
JOIN entries_b AS b USING (name, kind)
WHERE a.content <> b.content
ORDER BY a.name
