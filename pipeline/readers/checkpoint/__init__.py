"""Reads checkpoints of any family, lazily, without their training code and without running them."""
