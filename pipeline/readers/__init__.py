"""Readers: turn files that others wrote into the tables of shards."""
