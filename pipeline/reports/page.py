"""The page around every report, and the templates it is made of."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..wording import letter, number, ranges

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).resolve().parent / "templates"
SHOWN_ROWS = 200

INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Characters of names that would hide, reorder or break text; they are spelled out."""


def page(
    result: Mapping[str, Any],
    *,
    subject: str,
    verdict: str,
    headline: str,
    meaning: str = "",
    facts: Sequence[tuple[str, str, str]] = (),
    gaps: Sequence[str] = (),
    **values: Any,
) -> str:
    """Return a report; it is ASCII, whatever the names in it hold.

    Args:
        result: what result.json holds; `templates/<tool>.html` fills the page.
        subject: what was looked at, as paths.
        verdict: in the words of a reader.
        headline: the answer in one sentence.
        meaning: what the verdict does and does not say.
        facts: name, value, and the id of the section that tells more, or nothing.
        gaps: what could not be read.
        values: what the template needs besides.
    """
    templates = _environment()
    script = templates.get_template("page.js").render()
    text = templates.get_template(f"{result['tool']}.html").render(
        result=result,
        subject=subject,
        verdict=verdict,
        headline=headline,
        meaning=meaning,
        facts=facts,
        gaps=gaps,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        shown_rows=SHOWN_ROWS,
        **values,
    )
    visible = INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return visible.encode("ascii", "xmlcharrefreplace").decode()


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        bytecode_cache=jinja2.FileSystemBytecodeCache(),  # in a folder that only this user owns
    )
    environment.filters |= {"letter": letter, "number": number, "ranges": ranges}
    return environment
