"""Indexing a test collection, and checking an index of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from slice_os.api import Index
from slice_os.api import open as open_index
from slice_os.errors import EvaluationError
from slice_os.lab.evaluate.collections import Collection
from slice_os.storage import backend_for
from slice_os.types import Reject

ASKED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Survey:
    """How many documents a collection has, which of them are judged, and warnings."""

    documents: int
    judged: tuple[str, ...]
    warnings: tuple[str, ...]


def survey(collection: Collection) -> Survey:
    """Read all documents once, so that errors come before anything is encoded.

    Raises:
        EvaluationError: A row is not as it should be, there is no document, or no judged one.
    """
    lines = collection.qrels.document_lines
    count = 0
    judged: dict[str, None] = {}
    for document in collection.documents():
        count += 1
        if document.id in lines:
            judged[document.id] = None
    if not count:
        raise EvaluationError(f"{collection.folder} holds no document: add some.")
    missing = [document for document in lines if document not in judged]
    if not judged:
        raise EvaluationError(
            f"{collection.qrels.file}, line {lines[missing[0]]}, judges the document "
            f"{missing[0]!r}, and none that it judges is in {collection.folder}: give the "
            "judgements of these documents."
        )
    warning = (
        f"{len(missing):,} of {len(lines):,} documents that {collection.qrels.file} judges are not "
        f"in the collection and count as never found, {missing[0]!r} in line {lines[missing[0]]} "
        "for one."
        if missing
        else ""
    )
    return Survey(count, tuple(judged), (warning,) if warning else ())


@contextmanager
def collection_index(
    location: str | None,
    collection: Collection,
    surveyed: Survey,
    update: bool,
    warn: Callable[[str], object],
    tell: Callable[[int, int], None],
    **encoding: Any,
) -> Iterator[Index]:
    """Give an index of the collection: at `location`, or a temporary one.

    An index that does not exist is made; one that exists is used as it is, unless `update` brings
    it up to date. `tell` is called with the number of documents done, and of all; `encoding` are
    arguments of `slice_os.open`.

    Raises:
        EvaluationError: There is an index, and it holds none of the judged documents.
    """
    if location is None:
        with (
            tempfile.TemporaryDirectory(prefix="slice-os-") as folder,
            open_index(f"{folder}/collection.slice", **encoding) as index,
        ):
            _add(index, collection, surveyed, warn, tell)
            yield index
        return
    used = False if update else _is_used(location, surveyed, warn)
    with open_index(location, **encoding) as index:
        if not used:
            _add(index, collection, surveyed, warn, tell)
        yield index


def _add(
    index: Index,
    collection: Collection,
    surveyed: Survey,
    warn: Callable[[str], object],
    tell: Callable[[int, int], None],
) -> None:
    rejects: list[Reject] = []
    index.add(
        collection.documents(),
        on_reject=rejects.append,
        on_progress=lambda now: tell(
            now.documents + now.unchanged + now.rejected, surveyed.documents
        ),
    )
    if rejects:
        warn(
            f"{len(rejects):,} documents could not be indexed and count as never found: "
            f"{rejects[0].place!r} for one, {rejects[0].reason}."
        )


def _is_used(location: str, surveyed: Survey, warn: Callable[[str], object]) -> bool:
    """Tell whether there is an index at a location, and warn of missing documents."""
    backend = backend_for(location).open(location)
    if backend is None:
        return False
    ids = iter(surveyed.judged)
    held = 0
    with closing(backend):
        while some := list(islice(ids, ASKED_AT_ONCE)):
            held += len(backend.stored(some))
    if not held:
        raise EvaluationError(
            f"The index {location} holds none of the documents that are judged: give another "
            "location, or --update to add the collection."
        )
    missing = len(surveyed.judged) - held
    if missing:
        warn(
            f"The index {location} misses {missing:,} of {len(surveyed.judged):,} judged "
            "documents, which count as never found: give --update to add them."
        )
    return True
