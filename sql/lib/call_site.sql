-- lib/call_site: the line of the user's own code that a call was made from, without what changes
-- between two machines or two versions of a file: folder and line number. NULL when the stack has
-- no frame outside of libraries.
--
-- Frames are `file:line in function | code`, innermost first.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO call_site(stack) AS
  regexp_replace(
    list_filter(
      string_split(stack, chr(10)),
      lambda frame: NOT regexp_matches(
        frame, '/(site|dist)-packages/|/torch/|/mindspore/|/lib/python3|^<frozen'
      )
    )[1],
    '^(?:[^|]*?/)?([^/|:]+):\d+',
    '\1'
  )
