"""What a user can cause, each as one sentence: what is wrong, what was expected, what to do."""

from __future__ import annotations

from collectors.errors import CrossrankError


class UsageError(CrossrankError):
    """The command line asks for something that does not exist or does not go together."""


class DumpError(CrossrankError):
    """A dump cannot be read: not there, empty, something else, or from a newer schema."""


class QueryError(CrossrankError):
    """A user's SQL is refused or fails."""


class InternalError(Exception):
    """A mistake of ours: what was given could be read. Never the user's to mend, so exit code 1."""


class SqlFileError(InternalError):
    """A file under sql/ does not keep to the form that its header promises."""
