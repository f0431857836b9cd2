"""The answer as one HTML file that opens without network; the markup is in templates/.

    draw(result, folder) -> <tool>.py, what a reader is shown -> page.py -> templates/<tool>.html

`page.html` holds what every report has: verdict, headline, facts, warnings. `table.html` and
`charts.html` hold what several need.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

TOOLS = ("analyze", "checkpoint", "compare", "rl")
"""Commands with a report; each is a module of this name with a function `draw`."""


def draw(result: Mapping[str, Any], folder: Path) -> str:
    """Return the report of a result.

    Args:
        result: what result.json holds.
        folder: holds the Parquet tables behind the result.
    """
    return str(import_module(f"{__package__}.{result['tool']}").draw(result, folder))
