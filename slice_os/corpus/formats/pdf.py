"""PDF, by pypdfium2 of the extra `documents`."""

from __future__ import annotations

import re

from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.formats.pages import page_lines, running_text
from slice_os.errors import CorpusError, MissingExtraError

_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?")
_PASSWORD = 4
"""What PDFium calls the error."""


def parse(data: bytes) -> Parsed:
    """Return the pages' running text (see `pages`), and the title of the properties."""
    try:
        import pypdfium2
    except ImportError as exc:
        raise MissingExtraError("Reading .pdf files", "documents") from exc
    try:
        with pypdfium2.PdfDocument(data) as document:
            said = document.get_metadata_dict(skip_empty=True)
            text = running_text([page_lines(page) for page in document])
    except pypdfium2.PdfiumError as exc:
        if getattr(exc, "err_code", None) == _PASSWORD:
            raise CorpusError("is encrypted: save a copy without the password") from exc
        raise CorpusError(f"is not a readable PDF: {exc}") from exc
    if not text.strip():
        raise CorpusError("no text (if it is a scan, run OCR first)")
    date = _date(said.get("CreationDate", ""))
    return Parsed(text, said.get("Title", ""), author=said.get("Author", ""), date=date, says=True)


def _date(said: str) -> str:
    """Return when a document was made, in ISO 8601, if that can be read."""
    found = _DATE.match(said)
    if not found:
        return ""
    year, month, day, *clock = found.groups("00")
    day = f"{year}-{month if month != '00' else '01'}-{day if day != '00' else '01'}"
    zone = said[16:].replace("'", "")
    zone = f"{zone[:3]}:{zone[3:5]}" if re.fullmatch(r"[+-]\d{4}", zone) else zone[:1]
    return f"{day}T{':'.join(clock)}{zone if zone != 'Z' else '+00:00'}"
