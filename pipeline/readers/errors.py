"""What can be wrong with a file that others wrote."""

from __future__ import annotations

from collectors.errors import CrossrankError


class ReadError(CrossrankError):
    """A file, or what is in it, cannot be read: which, why, what to do."""
