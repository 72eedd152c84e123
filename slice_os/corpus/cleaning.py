"""What every text and value of a document goes through, whatever its format."""

from __future__ import annotations

import math
import re
from typing import Any

# A NUL ends a text in SQLite and confuses tokenizers; half a surrogate pair (JSON's "\ud800")
# cannot be written as UTF-8 at all.
_UNUSABLE = re.compile("\r\n?|[\x00\ud800-\udfff]")
# As long as what they replace, so that offsets are those of the source.
_REPLACEMENTS = {"\r\n": " \n", "\r": "\n", "\x00": " "}


def clean(text: str) -> str:
    r"""Return `text` with ``\n`` line ends, NULs as spaces and lone surrogates as U+FFFD.

    It is as long as before: ``\r\n`` becomes a space and ``\n``.
    """
    return _UNUSABLE.sub(lambda found: _REPLACEMENTS.get(found[0], "\ufffd"), text)


def clean_value(value: Any) -> Any:
    """Return a JSON value that every later step can write as JSON and UTF-8.

    NaN and the infinities, which Python's reader accepts, become strings.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean_value(item) for key, item in value.items()}
    return value
