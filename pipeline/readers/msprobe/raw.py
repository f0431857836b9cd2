"""One record of an msprobe dump as it stands in the files, for output in msprobe's own form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .context import CallTree, stack_groups
from .folders import RECORDS
from .json_text import read_records


def raw_record(folder: Path, name: str) -> dict[str, Any]:
    """Return name, record, chain of enclosing calls (outermost first) and stack of one call.

    The stack is an empty object when none was recorded, as msprobe writes it.
    """
    records: dict[str, Any] = {}
    for file in RECORDS:
        if (folder / file).exists():
            records |= read_records(folder / file).records
    tree, chain = CallTree(folder), [name]
    while (parent := tree.parent(chain[0])) and parent not in chain:
        chain.insert(0, parent)
    stacks = [frames for names, frames in stack_groups(folder) if name in names]
    return {
        "op_name": name,
        "data_info": records.get(name, {}),
        "construct_info": chain,
        "stack_info": stacks[0] if stacks else {},
    }
