-- lib/forward_name: the name of the forward call that a backward call belongs to: X.n.backward to
-- X.n.forward, and for a module X.backward.n to X.forward.n.
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO forward_name(name) AS
  regexp_replace(name, '\.backward(\.\d+)?$', '.forward\1')
