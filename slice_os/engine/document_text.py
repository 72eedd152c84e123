"""The text of a document, put together from the passages that an index holds."""

from __future__ import annotations

from collections.abc import Sequence

from slice_os.errors import MissingDocumentError, QueryError
from slice_os.storage.contract import Backend
from slice_os.text import joined
from slice_os.types import Document, Excerpt, Passage


def get_document(backend: Backend, document: str) -> Document | None:
    """Return a document as an index holds it, None if it does not.

    White space between passages is not stored: there are as many line ends, so that offsets hold.
    """
    metadata, passages = backend.read(document)
    if not passages:
        return None
    text = "\n" * passages[0].start + joined(passages)
    return Document(document, text, passages[0].title, metadata)


def show_document(
    backend: Backend, document: str, at: int | None, passage: int | None, context: int
) -> Excerpt:
    """Return a document, or of it one passage and `context` on each side.

    That is the passage of the character `at`, or the one of the number `passage`.

    Raises:
        MissingDocumentError: there is no such document.
        QueryError: there is no such character or passage in it.
    """
    if passage is not None:
        numbers = range(max(passage - context, 0), max(passage, 0) + context + 1)
        _, passages = backend.read(document, numbers)
        if not any(near.number == passage for near in passages):
            raise QueryError(f"There is no passage {passage} of a document {document!r}.")
        return join(passages)
    _, passages = backend.read(document)
    if not passages:
        raise MissingDocumentError(
            f"There is no document {document!r} in {backend.location}",
            hint="'slice-os list' shows the ids.",
        )
    if at is not None:
        end = max(passage.end for passage in passages)
        if not 0 <= at < end:
            raise QueryError(
                f"The document {document!r} has no character {at}: its text ends at {end}."
            )
        # Between two passages there is only white space, which counts to the first.
        here = max((n for n, each in enumerate(passages) if each.start <= at), default=0)
        passages = passages[max(here - context, 0) : here + context + 1]
    return join(passages)


def join(passages: Sequence[Passage]) -> Excerpt:
    """Return neighbouring passages of a document as one text."""
    first, text = passages[0], joined(passages)
    return Excerpt(first.document, first.title, first.start, first.start + len(text), text)
