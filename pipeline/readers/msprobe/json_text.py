"""Reads the JSON text of a dump, whole or damaged.

msprobe writes bare NaN and Infinity, which jiter takes. What jiter refuses (single surrogates,
bytes that are no UTF-8, deep nesting) Python's parser reads: slower, and to the same values. A
process that was killed leaves a file that ends in the middle, or one with nothing in it: every
record that is whole is kept.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jiter

_DATA = re.compile(r'"data"\s*:\s*\{')
_KEY = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*')
_HEADER = re.compile(r'"(\w+)"\s*:\s*(null|"[^"]*")')


@dataclass(frozen=True)
class RecordFile:
    """The content of one dump.json or debug.json.

    Args:
        header: task, level, framework, ...; what could be read of it.
        records: record by name, in the order of the file.
        damage: what is wrong with the file; empty when it is whole.
    """

    header: dict[str, Any]
    records: dict[str, Any]
    damage: str = ""


def read_records(path: Path) -> RecordFile:
    """Read a dump.json; a damaged file gives the records before the damage."""
    content = path.read_bytes()
    if not content.strip(b"\0 \n\r\t"):
        return RecordFile({}, {}, f"{path.name} is empty")
    try:
        whole = _parsed(content)
    except ValueError as error:
        text = _text(content)
        records = _whole_records(text)
        damage = f"{path.name} breaks off ({error}); {len(records)} whole records before that"
        return RecordFile(_header(text), records, damage)
    if not isinstance(whole, dict) or not isinstance(whole.get("data"), dict):
        return RecordFile({}, {}, f'{path.name} has no "data": not written by msprobe')
    records = whole.pop("data")
    return RecordFile(whole, records)


def read_object(path: Path) -> dict[str, Any]:
    """Read an optional JSON object (stack.json, construct.json); what cannot be read is empty."""
    try:
        content = _parsed(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _parsed(content: bytes) -> Any:
    try:
        return jiter.from_json(content)
    except ValueError:
        return json.loads(_text(content))


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")


def _whole_records(text: str) -> dict[str, Any]:
    records: dict[str, Any] = {}
    start = _DATA.search(text)
    place = start.end() if start else len(text)
    decoder = json.JSONDecoder()
    while key := _KEY.match(text, place):
        try:
            record, place = decoder.raw_decode(text, key.end())
        except ValueError:
            break
        records[json.loads(key[1])] = record
    return records


def _header(text: str) -> dict[str, Any]:
    start = _DATA.search(text)
    head = text[: start.start()] if start else text[:1000]
    return {key: json.loads(value) for key, value in _HEADER.findall(head)}
