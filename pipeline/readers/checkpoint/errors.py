"""What can be wrong with a checkpoint."""

from __future__ import annotations

from collectors.errors import CrossrankError


class CheckpointError(CrossrankError):
    """A checkpoint, or a file of one, cannot be read."""
