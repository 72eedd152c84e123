"""Word documents, by python-docx of the extra `documents`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from slice_os.corpus.formats.parsed import Parsed
from slice_os.errors import CorpusError, MissingExtraError

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import _Cell
    from docx.text.paragraph import Paragraph


def parse(data: bytes) -> Parsed:
    """Return paragraphs and table cells in their order, a line each, and the title property.

    Blank lines are around a heading.
    """
    try:
        import docx
    except ImportError as exc:
        raise MissingExtraError("Reading .docx files", "documents") from exc
    try:
        document = docx.Document(io.BytesIO(data))
        return Parsed("\n".join(_lines(document)), document.core_properties.title or "")
    except Exception as exc:  # broken files come up as any error there is
        raise CorpusError(f"is not a readable .docx: {exc or type(exc).__name__}") from exc


def _is_heading(paragraph: Paragraph) -> bool:
    style = paragraph.style
    return style is not None and (style.name or "").startswith(("Heading", "Title"))


def _lines(block: Document | _Cell) -> Iterator[str]:
    from docx.table import Table

    for item in block.iter_inner_content():
        if not isinstance(item, Table):
            yield item.text.join(["\n" * (bool(item.text.strip()) and _is_heading(item))] * 2)
            continue
        seen = set()
        for row in item.rows:
            for cell in row.cells:
                if cell._tc not in seen:  # a merged cell comes once for each place it covers
                    seen.add(cell._tc)
                    yield from _lines(cell)
