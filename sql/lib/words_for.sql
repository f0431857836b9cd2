-- lib/words_for: what a tensor holds besides finite numbers, as words: ['nan', 'inf', '-inf'].
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO words_for(nan, posinf, neginf) AS
  list_filter(
    [
      CASE WHEN nan THEN 'nan' END,
      CASE WHEN posinf THEN 'inf' END,
      CASE WHEN neginf THEN '-inf' END
    ],
    lambda word: word IS NOT NULL
  )
