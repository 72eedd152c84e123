"""Documents out of an index that exists, whoever made it: they are to get span vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from slice_os.corpus.rows import TEXT_FIELDS, TITLE_FIELD, Fields, flatten, to_document
from slice_os.errors import CorpusError, GoneError, LocationError
from slice_os.storage.cluster.candidates import TEXT, stored_text
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import dialect_of
from slice_os.storage.cluster.generations import check_named
from slice_os.storage.cluster.passages import stored_metadata
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.responses import AnyHit, PassageHit, nested
from slice_os.storage.cluster.searches import OURS
from slice_os.storage.cluster.settings import parse_location
from slice_os.text import joined
from slice_os.types import Document, Reject

PAGE = 50
"""Documents in one answer: their length is not known."""
_PASSAGE = [*TEXT, "metadata", "unindexed", "source", "document_hash"]


class IndexCorpus:
    """The documents of an index, from one state of it; see `read_index`.

    `bytes_done` of `bytes_total` (here: documents) have been read; `rejects` counts what was
    skipped, as a `Corpus` does.
    """

    ignored = unfollowed = left_out = 0
    types: Mapping[str, int] = MappingProxyType({})

    def __init__(
        self,
        cluster: Cluster,
        fields: Fields,
        usual: str | None,
        on_reject: Callable[[Reject], None] | None,
    ) -> None:
        self._cluster, self._fields, self._on_reject = cluster, fields, on_reject
        self._usual = usual
        self.rejects = self.bytes_done = 0
        self.bytes_total = cluster.count()

    def __iter__(self) -> Iterator[Document]:
        for page in self._cluster.pages({"query": {"match_all": {}}}, AnyHit, PAGE):
            for hit in page:
                self.bytes_done += 1
                try:
                    yield self._document(hit)
                except CorpusError as exc:
                    self._reject(f"/_doc/{hit['_id']}", str(exc))

    def _reject(self, place: str, reason: str) -> None:
        self.rejects += 1
        if self._on_reject is not None:
            self._on_reject(Reject(f"{self._cluster.address}{place}", reason))

    def _document(self, hit: AnyHit) -> Document:
        if "_source" not in hit:
            raise CorpusError("the index does not keep the _source of its documents")
        row = {**dict(flatten(hit["_source"])), "_id": hit["_id"]}
        # A field that is empty is often left out of a document.
        names = [name for name in (self._fields.title, *(self._fields.text or ())) if name]
        if self._fields.text is None and self._usual and not any(map(row.get, TEXT_FIELDS)):
            names.append(self._usual)
        if any(name in row for name in (*names, TITLE_FIELD)):
            row = {**dict.fromkeys(names), **row}
        return to_document(row, self._fields, hit["_id"])


class OwnCorpus(IndexCorpus):
    """The documents of an index that slice-os has made, put together from their passages."""

    def __iter__(self) -> Iterator[Document]:
        order = [{"document": "asc"}, {"passage": "asc"}, "_shard_doc"]
        body = {"query": OURS, "sort": order, "_source": _PASSAGE}
        pages = self._cluster.pages(body, PassageHit, PAGE)
        every = (hit["_source"] for page in pages for hit in page)
        for name, passages in groupby(every, key=itemgetter("document")):
            sources = list(passages)
            self.bytes_done += len(sources)
            last = sources[-1]
            are_all = [source["passage"] for source in sources] == list(range(len(sources)))
            if not are_all or "document_hash" not in last:
                self._reject(f"#{name}", "the index does not hold all of it")
                continue
            # White space before the first passage is in none.
            text = "\n" * sources[0]["start"] + joined(list(map(stored_text, sources)))
            title, source_file = last.get("title", ""), last.get("source", "")
            yield Document(name, text, title, stored_metadata(last), source_file)


def read_index(
    location: str,
    *,
    id_field: str | None = None,
    title_field: str | None = None,
    text_fields: Sequence[str] | str | None = None,
    on_reject: Callable[[Reject], None] | None = None,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> IndexCorpus:
    """Return the documents of an index of a cluster, made by anything, as `read` does of rows.

    Those of an index that slice-os has made come back as they were indexed, but for white space
    between their passages; the names of fields do not count there.

    Their ids are those of `id_field`, else their ``_id``; text and title are found as `read` finds
    them, and every other field becomes metadata, so that none is lost. A document may lack any of
    its text fields, if it has one, or a title. The index is only read. `credentials` and `client`
    are those of `slice_os.Index`.

    Raises:
        LocationError: there is no such index, or its text fields must be named.
        ClusterError: the cluster cannot be reached or refuses.
    """
    address = parse_location(location)
    connected = Client(address, credentials, client)
    names = (text_fields,) if isinstance(text_fields, str) else text_fields
    fields = Fields(id_field or "_id", title_field, tuple(names) if names else None)
    cluster = Cluster(connected, dialect_of(connected), address.name, is_ours=False)
    try:
        indexes = cluster.ask("GET", "_mapping", kind=dict[str, dict[str, Any]])
    except GoneError as exc:
        check_named(connected, cluster.dialect)
        raise LocationError(
            f"There is no index {address.name} at {address.url}: check its name."
        ) from exc
    if any(nested(index, "mappings", "_meta", "slice_os") for index in indexes.values()):
        ours = Cluster(connected, cluster.dialect, address.name)
        return OwnCorpus(ours, fields, None, on_reject)
    properties = (nested(index, "mappings", "properties") for index in indexes.values())
    mapped = [name for names in properties for name in names or ()]
    usual = next((name for name in TEXT_FIELDS if name in mapped), None)
    if mapped and not (fields.text or usual):
        raise LocationError(
            f"{location} has no field {' or '.join(TEXT_FIELDS)}",
            hint=f"name its text fields (--text-field); it has {', '.join(sorted(set(mapped)))}.",
        )
    return IndexCorpus(cluster, fields, usual, on_reject)
