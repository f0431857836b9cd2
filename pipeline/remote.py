"""Dumps in object storage: found by a listing, fetched by whoever reads them.

Credentials are taken from the usual places of the storage: for S3 the AWS_* variables,
~/.aws/credentials, the role of the machine; another endpoint by AWS_ENDPOINT_URL or
s3://bucket/folder?endpoint_override=host:port&scheme=http.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pyarrow as pa
from pyarrow import fs

from collectors.layout import RUN_FILE

from .errors import DumpError
from .shards import Dump, Shard, open_folder


def open_remote(url: str, steps: Sequence[int] = ()) -> Dump:
    """Find the shards of a dump under a URL.

    Raises:
        DumpError: the storage cannot be read, or there is no dump.
    """
    storage, base = _storage(url)
    try:
        found = storage.get_file_info(fs.FileSelector(base, recursive=True))
        files = [info for info in found if info.is_file]
    except (OSError, pa.ArrowException) as error:
        raise DumpError(_unreadable(url, error)) from None
    with tempfile.TemporaryDirectory(prefix="crossrank-") as folder:
        outline = Path(folder) / PurePosixPath(base).name
        outline.mkdir()
        for info in files:
            _outline(storage, info, outline / PurePosixPath(info.path).relative_to(base))
        dump = open_folder(outline, url, steps)
        shards = tuple(_there(shard, shard.path.relative_to(outline), url) for shard in dump.shards)
    return replace(dump, shards=shards)


def fetched(shard: Shard, folder: Path) -> Shard:
    """Copy a shard to this machine, below `folder`; return it as it lies there.

    Raises:
        DumpError: the storage cannot be read.
    """
    storage, base = _storage(shard.url)
    here = folder / shard.path
    here.mkdir(parents=True, exist_ok=True)
    source = f"{base}/{PurePosixPath(shard.path)}"
    try:
        fs.copy_files(source, str(here), storage, fs.LocalFileSystem(), use_threads=True)
    except (OSError, pa.ArrowException) as error:
        raise DumpError(_unreadable(shard.place, error)) from None
    return replace(shard, path=here)


def _there(shard: Shard, path: Path, url: str) -> Shard:
    place = f"{url.partition('?')[0]}/{PurePosixPath(path)}"
    return replace(shard, path=path, place=place, url=url)


def _storage(url: str) -> tuple[fs.FileSystem, str]:
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if url.startswith("s3://") and endpoint and "endpoint_override" not in url:
        scheme, _, host = endpoint.partition("://")
        url = f"{url}{'&' if '?' in url else '?'}endpoint_override={host}&scheme={scheme}"
    try:
        storage, base = fs.FileSystem.from_uri(url)
    except (OSError, pa.ArrowException) as error:
        raise DumpError(_unreadable(url, error)) from None
    return storage, base.rstrip("/")


def _outline(storage: fs.FileSystem, info: fs.FileInfo, file: Path) -> None:
    """Make an empty file of the same name, size and time; what describes the run is copied."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.name == RUN_FILE:
        file.write_bytes(storage.open_input_file(info.path).read())
        return
    file.touch()
    os.truncate(file, info.size)
    os.utime(file, ns=(info.mtime_ns or 0, info.mtime_ns or 0))


def _unreadable(url: str, error: Exception) -> str:
    """Return one sentence for what a storage says in many words."""
    text = " ".join(str(error).split())
    if isinstance(error, FileNotFoundError) or "NoSuchBucket" in text or "NOT_FOUND" in text:
        return f"{url} does not exist; expected the folder of a dump"
    denied = ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "InvalidAccessKey", "Forbidden")
    if any(word in text for word in denied):
        return (
            f"{url} cannot be read: the storage refuses these credentials; give others by "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of the machine"
        )
    return f"{url} cannot be read: {text}"
