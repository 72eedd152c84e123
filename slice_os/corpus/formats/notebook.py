"""Notebooks of Jupyter: the text, the code and the printed results of the cells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from slice_os.corpus.encodings import decode
from slice_os.corpus.formats.base import Parsed, readable
from slice_os.corpus.formats.text import parse_markdown


def parse(data: bytes) -> Parsed:
    """Return the cells in their order, blank lines between them; pictures are left out."""
    text, broken, guess = decode(data)
    with readable(".ipynb", (ValueError, KeyError, TypeError, AttributeError)):
        book = json.loads(text)
        # Before 2014 cells were in worksheets.
        cells = book.get("cells") or [
            cell for sheet in book.get("worksheets", ()) for cell in sheet["cells"]
        ]
        text = "\n\n".join(filter(None, (part.strip("\n") for part in _parts(cells))))
    return Parsed(text, parse_markdown(text.encode("utf-8", "replace")).title, broken, guess=guess)


def _parts(cells: list[dict[str, Any]]) -> Iterator[str]:
    for cell in cells:
        yield _joined(cell.get("source", cell.get("input", "")))
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            yield _joined(output.get("text", data.get("text/markdown", data.get("text/plain", ""))))
            if output.get("output_type") == "error":
                yield f"{output.get('ename', '')}: {output.get('evalue', '')}"


def _joined(text: Any) -> str:
    return text if isinstance(text, str) else "".join(text)
