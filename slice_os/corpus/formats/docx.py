"""Word documents, by python-docx of the extra `documents`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.limits import open_zip
from slice_os.errors import CorpusError, MissingExtraError

if TYPE_CHECKING:
    from docx.blkcntnr import BlockItemContainer
    from docx.document import Document
    from docx.text.paragraph import Paragraph


def parse(data: bytes) -> Parsed:
    """Return headers, the body and footers, a paragraph or table cell a line; and the title.

    Blank lines are around a heading.
    """
    try:
        import docx
    except ImportError as exc:
        raise MissingExtraError("Reading .docx files", "documents") from exc
    try:
        document = docx.Document(open_zip(data))
        said = document.core_properties
        made = said.created.isoformat() if said.created else ""
        text = "\n".join(_all_lines(document))
        return Parsed(text, said.title or "", author=said.author or "", date=made, says=True)
    except CorpusError:
        raise
    except Exception as exc:  # broken files come up as any error there is
        raise CorpusError(f"is not a readable .docx: {exc or type(exc).__name__}") from exc


def _all_lines(document: Document) -> Iterator[str]:
    """Give the lines of the body between those of headers and footers, which come once each."""
    kinds = ("header", "first_page_header", "even_page_header")
    yield from _around(document, kinds)
    yield from _lines(document)
    yield from _around(document, [kind.replace("header", "footer") for kind in kinds])


def _around(document: Document, kinds: Sequence[str]) -> Iterator[str]:
    parts = (getattr(section, kind) for section in document.sections for kind in kinds)
    own = (part for part in parts if not part.is_linked_to_previous)
    yield from dict.fromkeys(line for part in own for line in _lines(part) if line.strip())


def _is_heading(paragraph: Paragraph) -> bool:
    style = paragraph.style
    return style is not None and (style.name or "").startswith(("Heading", "Title"))


def _lines(block: BlockItemContainer | Document) -> Iterator[str]:
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
