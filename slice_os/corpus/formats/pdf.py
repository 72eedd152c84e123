"""PDF, by pypdfium2 of the extra `documents`."""

from __future__ import annotations

import re

from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.formats.pages import page_lines, running_text
from slice_os.errors import CorpusError, MissingExtraError

_DATE = re.compile(
    r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(?P<utc>Z)|([+-])(\d\d)'?(\d\d)?)?"
)
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
            about = document.get_metadata_dict(skip_empty=True)
            text = running_text([page_lines(page) for page in document])
    except pypdfium2.PdfiumError as exc:
        if getattr(exc, "err_code", None) == _PASSWORD:
            raise CorpusError("is encrypted: save a copy without the password") from exc
        raise CorpusError(f"is not a readable PDF: {exc}") from exc
    if not text.strip():
        raise CorpusError("no text (if it is a scan, run OCR first)")
    title, author = about.get("Title", ""), about.get("Author", "")
    return Parsed(text, title, 0, author, _date(about.get("CreationDate", "")), says=True)


def _date(text: str) -> str:
    """Return when a document was made, in ISO 8601, if that can be read."""
    parts = _DATE.match(text)
    if not parts:
        return ""
    year, month, day, hour, minute, second, _, sign, hours, minutes = parts.groups()
    date = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}"
    if sign and hours:
        return f"{date}{sign}{hours}:{minutes or '00'}"
    return f"{date}+00:00" if parts["utc"] else date
