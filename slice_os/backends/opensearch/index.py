"""An index in a cluster: opening and making it, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import islice
from typing import Any

from slice_os.backends.base import (
    Backend,
    Candidate,
    ClusterSettings,
    IndexMeta,
    IndexStatus,
    Retrieval,
    StoredDocument,
    StoredPassage,
)
from slice_os.backends.opensearch.cluster import PAGE, Cluster
from slice_os.backends.opensearch.connection import Address, connect, parse_location, patiently
from slice_os.backends.opensearch.documents import Entry, stored_document, stored_metadata
from slice_os.backends.opensearch.loading import put_replicas
from slice_os.backends.opensearch.mending import mend
from slice_os.backends.opensearch.retrieve import (
    DESCRIBED,
    PLACED,
    Retriever,
    plugins,
    stored_place,
)
from slice_os.backends.opensearch.scan import Scan, usual_tolerance
from slice_os.backends.opensearch.template import (
    GENERATION,
    read_meta,
    render_template,
    whole_index,
)
from slice_os.backends.opensearch.writer import OpenSearchWriter
from slice_os.errors import ClusterError, EncoderMismatchError, LocationError
from slice_os.filters import Condition, Filter, flat_metadata
from slice_os.lexical import Wording
from slice_os.query import filter_clauses
from slice_os.records import DocumentInfo, Float32, Passage, Reject


class OpenSearchBackend(Backend):
    """An index in an OpenSearch cluster; see `Backend` for the contract. Threads may share it."""

    def __init__(
        self, cluster: Cluster, meta: IndexMeta, settings: ClusterSettings, has_exact: bool
    ) -> None:
        self._cluster, self.meta, self.settings = cluster, meta, settings
        self._has_exact = has_exact
        self.location = str(cluster.address)
        self._retriever = Retriever(cluster, meta, settings)
        self._known: dict[str, list[Entry]] = {}

    @classmethod
    def open(cls, location: str) -> OpenSearchBackend | None:
        address = parse_location(location)
        with ExitStack() as on_failure:
            client = on_failure.enter_context(closing(connect(address)))
            params = {"ignore_unavailable": "true"}
            found = patiently(
                lambda: client.indices.get(index=address.name, params=params), address.url
            )
            if not found:
                return None
            if len(found) > 1:
                raise LocationError(
                    f"The alias {address.name} names {len(found)} indexes "
                    f"({', '.join(sorted(found))}): let it name one."
                )
            ((index, said),) = found.items()
            if index == address.name:
                raise LocationError(whole_index(index, said))
            if narrow := set(said["aliases"][address.name]) - {"is_write_index", "is_hidden"}:
                raise LocationError(
                    f"The alias {address.name} has a setting that slice-os does not go by "
                    f"({', '.join(sorted(narrow))}): make it again without."
                )
            meta, settings = read_meta(index, said["mappings"], said["settings"])
            has_exact = "exact" in said["mappings"]["properties"]["text"].get("fields", {})
            opened = cls(Cluster(client, address, index), meta, settings, has_exact)
            on_failure.pop_all()
            return opened

    @classmethod
    def create(
        cls, location: str, meta: IndexMeta, settings: ClusterSettings | None = None
    ) -> OpenSearchBackend:
        address = parse_location(location)
        index = GENERATION.format(address.name, 1)
        body: dict[str, Any] = {"aliases": {address.name: {}}}
        with closing(connect(address)) as client:
            applied = None if settings else _applied(client, address)
            if applied is None:
                settings = settings or ClusterSettings()
                if settings.dimensions == meta.dimension:
                    settings = replace(settings, dimensions=None)
                body |= render_template(address.name, meta, settings)["template"]
            elif not applied["family"]:
                raise LocationError(
                    f"The template {address.name} names no encoder: 'slice-os templates apply "
                    f"--index {address}' puts one there that does."
                )
            elif applied["family"] != meta.family:
                raise EncoderMismatchError(
                    f"The template {address.name} is for the encoder {applied['name']} (family "
                    f"{applied['family'][:12]}), not for {meta.encoder} (family "
                    f"{meta.family[:12]}): apply one for it, or give the other encoder's folder."
                )
            made = patiently(lambda: _make(client, index, body), address.url)
            try:
                opened = cls.open(location)
            except LocationError as exc:
                if not made:
                    raise
                patiently(lambda: client.indices.delete(index=index), address.url)
                raise LocationError(
                    f"The cluster's templates make {index} another index than slice-os needs: look "
                    f"at those that match its name, or apply one again. ({exc})"
                ) from exc
        if opened is None:
            raise LocationError(
                f"The index {index} exists and the alias {address.name} does not: add the "
                "alias, delete the index, or give another name."
            )
        return opened

    @property
    def has_hybrid(self) -> bool:
        """Whether every node can answer a `hybrid` query."""
        try:
            return "opensearch-neural-search" in plugins(self._cluster)
        except ClusterError:  # it may not be ours to know
            return False

    @property
    def usual_tolerance(self) -> float:
        """The tolerance that the stored spans of 99 % of the passages keep."""
        return usual_tolerance(self._cluster, self.settings)

    def check(self, settings: Mapping[str, Any]) -> None:
        for name, wanted in settings.items():
            has = getattr(self.settings, name)
            if name == "dimensions":
                has, wanted = (one or self.meta.dimension for one in (has, wanted))
            if name == "replicas":
                put_replicas(self._cluster, wanted)
            elif wanted != has:
                raise LocationError(
                    f"The index {self.location} has {name.replace('_', ' ')} {has}, {wanted} was "
                    "asked for: leave the option out, or index to a new location."
                )

    def mend(
        self,
        on_progress: Callable[[float], object] = lambda share: None,
        *,
        everything: bool = False,
    ) -> int:
        """Make spans anew that are wrong or in danger; see `mending.mend`."""
        return mend(self._cluster, self.meta, self.settings, on_progress, everything=everything)

    def check_wording(self, conditions: Sequence[Condition]) -> None:
        """Raise LocationError if exact words are asked for and the index does not hold them."""
        if not self._has_exact and any(isinstance(one, Wording) for one in conditions):
            raise LocationError(
                f"The index {self.location} was made before exact words could be asked for: "
                "index to a new location, or ask without quotes, must and must not ('--literal')."
            )

    def status(self) -> IndexStatus:
        body = {
            "size": 0,
            "track_total_hits": True,
            "aggs": {
                "words": {"sum": {"field": "word_count"}},
                "begun": {"filter": {"term": {"passage": 0}}},
                "complete": {"value_count": {"field": "document_hash"}},
            },
        }
        self._cluster.refresh()
        found = self._cluster.search(body)
        stats = self._cluster.ask(
            lambda: self._cluster.client.indices.stats(index=self._cluster.index)
        )["_all"]["primaries"]
        passages = found["hits"]["total"]["value"]
        counts = found["aggregations"]
        complete, begun = int(counts["complete"]["value"]), int(counts["begun"]["doc_count"])
        return IndexStatus(
            self.location,
            "opensearch",
            self.meta,
            complete,
            passages,
            int(counts["words"]["value"]),
            stats["store"]["size_in_bytes"],
            {
                "incomplete_documents": max(begun - complete, 0),
                "generation": self._cluster.index,
                "spans": stats["docs"]["count"] - passages,
                "tolerance": self.settings.tolerance,
                "vectors": f"{self.settings.vector_type}, "
                f"{self.settings.dimensions or self.meta.dimension} dimensions",
                "engine": self.settings.engine,
                "roots": self.roots() or {},
            },
        )

    def roots(self) -> dict[str, str] | None:
        roots: dict[str, str] | None = self._cluster.describe()[0]["_meta"]["slice_os"].get("roots")
        return roots

    def sources(self) -> Iterator[tuple[str, str]]:
        self._cluster.refresh()
        return self._cluster.sources()

    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        entries = self._cluster.entries(documents)
        self._known |= {document: entries.get(document, []) for document in documents}
        return {document: stored_document(some) for document, some in entries.items()}

    def matching(self, filters: Sequence[Filter]) -> list[str]:
        found = self._cluster.sources(filter_clauses(filters))
        return list(dict.fromkeys(document for document, _ in found))

    def documents(
        self, filters: Sequence[Filter], size: int, offset: int = 0
    ) -> list[DocumentInfo]:
        found = islice(self._cluster.documents(filter_clauses(filters)), offset, offset + size)
        buckets = {bucket["key"]["document"]: bucket for bucket in found}
        first: dict[str, dict[str, Any]] = {}
        ids = list(buckets)
        for at in range(0, len(ids), PAGE):
            some = [{"terms": {"document": ids[at : at + PAGE]}}, {"term": {"passage": 0}}]
            for source in self._cluster.fields({"bool": {"filter": some}}, DESCRIBED):
                first[source["document"]] = source
        return [
            DocumentInfo(
                name,
                first.get(name, {}).get("title", ""),
                int(bucket["words"]["value"]),
                bucket["doc_count"],
                flat_metadata(stored_metadata(first.get(name, {}))),
            )
            for name, bucket in buckets.items()
        ]

    def passages(self, document: str, numbers: range | None = None) -> list[Passage]:
        clauses: list[dict[str, Any]] = [
            {"term": {"document": document.encode("utf-8", "replace").decode()}}
        ]
        if numbers is not None:
            clauses.append({"range": {"passage": {"gte": numbers.start, "lt": numbers.stop}}})
        found = self._cluster.fields({"bool": {"filter": clauses}}, PLACED)
        return [stored_place(source) for source in found]

    def has_field(self, name: str) -> bool:
        clauses = filter_clauses([Filter(name, "exists", "")])
        body = {"size": 0, "terminate_after": 1, "query": {"bool": {"filter": clauses}}}
        return bool(self._cluster.search(body)["hits"]["total"]["value"])

    def fields(self) -> list[str]:
        return list(self._cluster.field_names())

    def retrieve(self, retrieval: Retrieval) -> list[Candidate]:
        self.check_wording(retrieval.filters)
        found = self._retriever.retrieve(retrieval)
        if not found:
            self._check_emptied()
        return found

    def _check_emptied(self) -> None:
        """Raise if the alias names an empty generation beside a full one: _rollover does that."""
        if full := self._cluster.fuller():
            raise LocationError(
                f"{self.location} names the empty {self._cluster.index}, and {full} holds "
                f"documents (_rollover does that): 'slice-os doctor --index {self.location}' says "
                "how to go back."
            )

    def scan(
        self,
        vectors: Float32,
        lengths: Sequence[range],
        cosines: Float32,
        filters: Sequence[Condition] = (),
        on_progress: Callable[[float], object] = lambda share: None,
        exact: bool = False,
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        self.check_wording(filters)
        scan = Scan(self._cluster, self.settings, vectors, lengths, cosines, filters, on_progress)
        # The degree of fewer dimensions says too little.
        by_graph = not exact and self.settings.dimensions is None and scan.graph_pays()
        found = scan.by_graph() if by_graph else scan.every_word()
        first = next(found, None)
        if first is None:
            self._check_emptied()
            return
        yield first
        yield from found

    def writer(self, on_reject: Callable[[Reject], None] = lambda reject: None) -> OpenSearchWriter:
        return OpenSearchWriter(self._cluster, self.meta, self.settings, self._known, on_reject)

    def close(self) -> None:
        self._cluster.client.close()


def _applied(client: Any, address: Address) -> dict[str, Any] | None:
    """Return the encoder of the template that `templates apply` put there; None: there is none."""
    from opensearchpy import NotFoundError

    def ask() -> dict[str, Any] | None:
        try:
            found = client.indices.get_index_template(name=address.name)
        except NotFoundError:
            return None
        (one,) = found["index_templates"]
        mappings = one["index_template"].get("template", {}).get("mappings", {})
        said: dict[str, Any] | None = mappings.get("_meta", {}).get("slice_os", {}).get("encoder")
        return said

    try:
        return patiently(ask, address.url)
    except ClusterError:  # it may not be ours to know
        return None


def _make(client: Any, index: str, body: dict[str, Any]) -> bool:
    """Make an index; False if it is there."""
    from opensearchpy import RequestError

    try:
        client.indices.create(index=index, body=body)
    except RequestError as exc:
        if exc.error == "resource_already_exists_exception":
            return False
        raise
    return True
