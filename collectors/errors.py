"""What can go wrong while shards are written or named."""

from __future__ import annotations


class CrossrankError(Exception):
    """Base of every error a user can cause; carries one finished sentence."""
