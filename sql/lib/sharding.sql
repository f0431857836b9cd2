-- lib/sharding: how a DTensor lies over the ranks of its mesh, in one spelling for all versions of
-- torch: 'S0/4' is dimension 0 cut into 4, '_S0/4' the same in strides, 'P/2' a sum that 2 ranks
-- each hold a term of. NULL where every rank holds the whole.
--
-- The layout is the JSON that a collector writes: the size of the mesh and, for each dimension of
-- it, a placement, as torch.distributed.tensor prints it: Shard(dim=0) or S(0), Replicate() or R,
-- Partial(sum) or P(sum).
--
-- scope:   lib
CREATE OR REPLACE TEMP MACRO sharding(layout) AS
  nullif(
    array_to_string(
      list_transform(
        list_filter(
          list_zip(
            from_json(layout, '{"placements": ["VARCHAR"]}').placements,
            from_json(layout, '{"mesh": ["BIGINT"]}').mesh
          ),
          lambda place: place[2] > 1 AND place[1][1] <> 'R'
        ),
        lambda place: concat(
          regexp_extract(place[1], '^_?[SP]'), regexp_extract(place[1], '\d+'), '/', place[2]
        )
      ),
      ' '
    ),
    ''
  )
