"""The folder of a run under way: what its tasks have finished, so that a later run goes on there.

    .<out>.unfinished/token                           tells a worker that it sees the same disk
    .<out>.unfinished/<batch>/<folder>.<question>.parquet   a batch that is whole

A batch goes by what it reads and what it asks: other files, other SQL, another name.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOKEN = "token"


@dataclass(frozen=True)
class Work:
    """The folder, as the driver and its workers know it.

    Args:
        folder: where it is.
        token: what its file of that name holds.
    """

    folder: Path
    token: str

    @classmethod
    def open(cls, folder: Path) -> Work:
        """Make the folder, or take up one that an earlier run left."""
        folder.mkdir(parents=True, exist_ok=True)
        work = cls(folder.resolve(), secrets.token_hex(16))
        (folder / TOKEN).write_text(work.token)
        return work

    def is_here(self) -> bool:
        """Tell whether this process sees the driver's disk."""
        try:
            return (self.folder / TOKEN).read_text() == self.token
        except OSError:
            return False

    def finished(self, batch: str) -> bool:
        """Tell whether a batch is whole."""
        return (self.folder / batch).is_dir()

    def put(self, batch: str, answers: Mapping[str, bytes]) -> None:
        """Keep the answers of a batch; it is there as a whole or not at all."""
        unfinished = self.folder / f"{batch}.{secrets.token_hex(4)}"
        unfinished.mkdir()
        for question, rows in answers.items():
            (unfinished / _file(question)).write_bytes(rows)
        try:
            os.rename(unfinished, self.folder / batch)
        except OSError:  # a task that was tried twice finished twice
            shutil.rmtree(unfinished)

    def files(self, batches: Sequence[str], question: str) -> list[str]:
        """Return the Parquet files of a question, in the order of the batches."""
        return [str(self.folder / batch / _file(question)) for batch in batches]

    def remove(self) -> None:
        """Remove the folder: the result is there."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _file(question: str) -> str:
    return f"{question.replace('/', '.')}.parquet"
