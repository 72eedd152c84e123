"""PDF, by pypdf of the extra `documents`."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.formats.pages import page_lines, running_text
from slice_os.errors import CorpusError, MissingExtraError

if TYPE_CHECKING:
    from pypdf import DocumentInformation, PdfReader


def parse(data: bytes) -> Parsed:
    """Return the pages' running text (see `pages`), and the title of the properties."""
    try:
        reader = _open(data)
        text = running_text(map(page_lines, reader.pages))
        said = reader.metadata
        title, author = (said.title, said.author) if said else ("", "")
        date = _date(said) if said else ""
    except (CorpusError, MissingExtraError):
        raise
    except Exception as exc:  # broken files come up as any error there is
        raise CorpusError(f"is not a readable PDF: {exc or type(exc).__name__}") from exc
    if not text.strip():
        raise CorpusError("no text (if it is a scan, run OCR first)")
    return Parsed(text, str(title or ""), author=str(author or ""), date=date, says=True)


def _date(said: DocumentInformation) -> str:
    """Return when a document was made, in ISO 8601, if that can be read."""
    try:
        return said.creation_date.isoformat() if said.creation_date else ""
    except ValueError:
        return ""


def _open(data: bytes) -> PdfReader:
    try:
        from pypdf import PdfReader
    except ImportError as exc:
        raise MissingExtraError("Reading .pdf files", "documents") from exc
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise CorpusError("is encrypted: save a copy without the password")
    return reader
