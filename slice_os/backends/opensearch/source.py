"""Documents out of an index that exists: plain BM25 documents that are to get span vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from slice_os.backends.opensearch.cluster import Cluster
from slice_os.backends.opensearch.connection import connect, parse_place
from slice_os.corpus.rows import Fields, to_document
from slice_os.errors import CorpusError, PlaceError
from slice_os.records import Document, Reject

PAGE = 50
"""Documents in one answer: their length is not known."""


class IndexCorpus:
    """The documents of an index, from one state of it; see `read_index`.

    `bytes_done` of `bytes_total` (here: documents) have been read; `rejects` counts what was
    skipped, as a `Corpus` does.
    """

    ignored = 0

    def __init__(
        self, cluster: Cluster, fields: Fields, on_reject: Callable[[Reject], None] | None
    ) -> None:
        self._cluster, self._fields, self._on_reject = cluster, fields, on_reject
        self.rejects = self.bytes_done = 0
        self.bytes_total = int(
            cluster.ask(lambda: cluster.client.count(index=cluster.index))["count"]
        )

    def __iter__(self) -> Iterator[Document]:
        for page in self._cluster.pages({"query": {"match_all": {}}}, PAGE):
            for hit in page:
                self.bytes_done += 1
                try:
                    yield self._document(hit)
                except CorpusError as exc:
                    self.rejects += 1
                    if self._on_reject is not None:
                        place = f"{self._cluster.address}/_doc/{hit['_id']}"
                        self._on_reject(Reject(place, str(exc)))

    def _document(self, hit: dict[str, Any]) -> Document:
        if "_source" not in hit:
            raise CorpusError("the index does not keep the _source of its documents")
        return to_document({**hit["_source"], "_id": hit["_id"]}, self._fields, hit["_id"])


def read_index(
    place: str,
    *,
    id_field: str | None = None,
    title_field: str | None = None,
    text_fields: Sequence[str] | str | None = None,
    on_reject: Callable[[Reject], None] | None = None,
) -> IndexCorpus:
    """Return the documents of an index of a cluster, made by anything, as `read` does of rows.

    Their ids are those of `id_field`, else their ``_id``; text and title are found as `read` finds
    them, and every other field becomes metadata, so that none is lost. The index is only read.

    Raises:
        PlaceError: there is no such index, or slice-os has made it.
        ClusterError: the cluster cannot be reached or refuses.
    """
    from opensearchpy import NotFoundError

    address = parse_place(place)
    client = connect(address)
    names = (text_fields,) if isinstance(text_fields, str) else text_fields
    fields = Fields(id_field or "_id", title_field, tuple(names) if names else None)
    cluster = Cluster(client, address, address.name)

    def mappings() -> dict[str, Any]:
        try:
            return dict(client.indices.get_mapping(index=address.name))
        except NotFoundError:
            return {}

    found = cluster.ask(mappings)
    if not found:
        raise PlaceError(f"There is no index {address.name} at {address.url}: check its name.")
    if any("slice_os" in (one["mappings"].get("_meta") or {}) for one in found.values()):
        raise PlaceError(f"slice-os has made {place}: its passages have their vectors.")
    return IndexCorpus(cluster, fields, on_reject)
