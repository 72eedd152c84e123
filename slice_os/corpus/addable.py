"""What callers have as documents -> documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from slice_os.corpus.reader import Corpus
from slice_os.corpus.rows import Fields, to_document
from slice_os.errors import CorpusError
from slice_os.types import Document, content_hash

Addable = Document | str | tuple[str | int, str] | Mapping[str, Any]
"""A document, a text, an id and a text, or a row with a text such as ``read`` takes from JSON."""
TAKEN = (
    "Documents are given as a list, or what slice_os.read returns: of Document, of texts, of (id, "
    "text), or of dicts with a field 'text' and perhaps 'id' and 'title'"
)


def as_documents(given: Corpus | Iterable[Addable]) -> Corpus | Iterable[Document]:
    """Return documents for what was given; a text without an id has a hash of it for one.

    Raises:
        CorpusError: that is nothing of which documents can be made; for what an iterable yields it
            comes when it is met.
    """
    if isinstance(given, Corpus):
        return given
    if isinstance(given, str | bytes | Mapping | Document) or not isinstance(given, Iterable):
        raise CorpusError(f"{TAKEN}; this is of type {type(given).__name__}.")
    return (_document(number, item) for number, item in enumerate(given, start=1))


def _document(number: int, item: object) -> Document:
    match item:
        case Document():
            name: object = item.id  # callers without type checks have numbers
            return replace(item, id=str(name)) if isinstance(name, int) else item
        case str():
            return Document(f"text-{content_hash(item)}", item)
        case [str() | int() as name, str() as text]:
            return Document(str(name), text)
        case Mapping():
            try:
                return to_document(item, Fields(), f"text-{content_hash(dict(item))}")
            except CorpusError as exc:
                raise CorpusError(f"Document {number} of those given {exc}.") from exc
    raise CorpusError(f"{TAKEN}; number {number} is of type {type(item).__name__}.")
