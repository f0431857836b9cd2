"""Collectors: what runs inside a training job and writes shards (needs pyarrow, nothing else)."""
