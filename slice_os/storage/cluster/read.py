"""An index in a cluster: BM25 fields and span vectors side by side."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from slice_os.errors import ClusterError, EncoderMismatchError, LocationError, RefusedError
from slice_os.storage.cluster.candidates import (
    DESCRIBED,
    STORED,
    TEXT,
    Retriever,
    stored_passage,
    stored_text,
)
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.cluster_errors import RETRY_TIMEOUT
from slice_os.storage.cluster.dialect import Dialect, dialect_of
from slice_os.storage.cluster.generations import (
    block,
    changes,
    lift_block,
    list_generations,
    make_generation,
    move_alias,
    note_build,
    note_hold,
)
from slice_os.storage.cluster.load_settings import put_replicas
from slice_os.storage.cluster.mining_scan import Scan, usual_tolerance
from slice_os.storage.cluster.passages import Entry, stored_document, stored_metadata
from slice_os.storage.cluster.query import filter_clauses
from slice_os.storage.cluster.repair_spans import mend
from slice_os.storage.cluster.requests import FREE, LONGEST_TERM, PAGE, WORDS_PAGE, Cluster
from slice_os.storage.cluster.response_checks import reading, reads_answers, typed, whole
from slice_os.storage.cluster.settings import Layout, parse_location
from slice_os.storage.cluster.template import GENERATION, read_meta, render_template, whole_index
from slice_os.storage.cluster.write import ClusterWriter
from slice_os.storage.contract import (
    Backend,
    Candidate,
    Generation,
    IndexMeta,
    IndexStatus,
    MiningQuery,
    SearchQuery,
    StoredDocument,
    StoredPassage,
    Writer,
)
from slice_os.text import Wording
from slice_os.text.filters import Condition, Filter, flat_metadata
from slice_os.types import DocumentInfo, Metadata, Passage, Reject

KNOWN_DOCUMENTS, KNOWN_PASSAGES = 4096, 50_000
"""What is remembered of what was looked up last."""
REMEMBERED = 5.0
"""Seconds for which a search takes what was live for what is live."""
_moves: Counter[str] = Counter()
"""How often this process has moved a name: what was live before is asked for again."""
LAST = 1 << 62
"""After all passages of a shard."""


class ClusterBackend(Backend):
    """An index in a cluster; see `Backend` for the contract. Threads may share it."""

    def __init__(
        self,
        cluster: Cluster,
        meta: IndexMeta,
        layout: Layout,
        has_exact: bool,
        uuid: str | None = None,
    ) -> None:
        """Take a generation; one without `uuid` is not the live one."""
        self._uuid = uuid
        self._cluster, self.meta, self.layout = cluster, meta, layout
        self._has_exact = has_exact
        self.effort = cluster.client.effort
        self.location = str(cluster.address)
        self.connection = cluster.client.connection
        self._retriever = Retriever(cluster, meta, layout)
        self._known: dict[str, list[Entry]] = {}
        self._seen_live = time.monotonic()
        self._moves = _moves[self.location]
        self._fields: set[str] = set()

    @classmethod
    def open(cls, location: str, **options: Any) -> ClusterBackend | None:
        address = parse_location(location)
        with ExitStack() as on_failure:
            client = on_failure.enter_context(Client(address, **options))
            with reading(client.url):
                dialect = dialect_of(client)
                found = client.request("GET", f"/{address.name}", ignore_unavailable="true")
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
                meta, layout = read_meta(index, said["mappings"], said["settings"], dialect)
                has_exact = "exact" in said["mappings"]["properties"]["text"].get("fields", {})
                uuid = said["settings"]["index"]["uuid"]
                opened = cls(Cluster(client, dialect, index), meta, layout, has_exact, uuid)
            on_failure.pop_all()
        return opened

    @classmethod
    def create(
        cls,
        location: str,
        meta: IndexMeta,
        *,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ClusterBackend:
        address = parse_location(location)
        index = GENERATION.format(address.name, 1)
        body: dict[str, Any] = {"aliases": {address.name: {}, FREE.format(address.name): {}}}
        with Client(address, **options) as client:
            applied = None if settings else _applied(client)
            if applied is None:
                layout = Layout.of(settings or {})
                if layout.dimensions == meta.dimension:
                    layout = replace(layout, dimensions=None)
                rendered = render_template(address.name, meta, layout, dialect_of(client))
                body |= rendered["template"]
            elif not applied["weights_hash"]:
                raise LocationError(
                    f"The template {address.name} names no encoder: 'slice-os templates apply "
                    f"--index {address}' puts one there that does."
                )
            elif applied["weights_hash"] != meta.weights_hash:
                raise EncoderMismatchError(
                    f"The template {address.name} is for the encoder {applied['name']} (weights "
                    f"{applied['weights_hash'][:12]}), not for {meta.encoder} (weights "
                    f"{meta.weights_hash[:12]}): apply one for it, or give the other encoder's "
                    "folder."
                )
            made = _make(client, index, body)
            try:
                opened = cls.open(location, **options)
            except LocationError as exc:
                if not made:
                    raise
                client.request("DELETE", f"/{index}")
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
    def cluster(self) -> Cluster:
        """The requests to this generation."""
        return self._cluster

    @property
    def dialect(self) -> Dialect:
        """What the cluster's kind of server understands."""
        return self._cluster.dialect

    @property
    def has_hybrid(self) -> bool:
        """Whether every node can answer a `hybrid` query."""
        return self._cluster.dialect.has_hybrid(self._cluster.client)

    @property
    def usual_tolerance(self) -> float:
        """The tolerance that the stored spans of 99 % of the passages keep."""
        return usual_tolerance(self._cluster, self.layout)

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        Layout.of(settings)
        for name, wanted in settings.items():
            has = getattr(self.layout, name)
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
        return mend(self._cluster, self.meta, self.layout, on_progress, everything=everything)

    def check_wording(self, conditions: Sequence[Condition]) -> None:
        """Raise LocationError if exact words are asked for and the index does not hold them."""
        if not self._has_exact and any(isinstance(one, Wording) for one in conditions):
            raise LocationError(
                f"The index {self.location} was made before exact words could be asked for: "
                "index to a new location, or ask without quotes, must and must not ('--literal')."
            )

    @reads_answers
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
        stats = self._cluster.ask("GET", "_stats")["_all"]["primaries"]
        passages = whole(found["hits"]["total"]["value"])
        counts = found["aggregations"]
        complete, begun = whole(counts["complete"]["value"]), whole(counts["begun"]["doc_count"])
        return IndexStatus(
            self.location,
            self._cluster.dialect.name,
            self.meta,
            complete,
            passages,
            whole(counts["words"]["value"]),
            whole(stats["store"]["size_in_bytes"]),
            {
                "incomplete_documents": max(begun - complete, 0),
                "generation": self._cluster.index,
                "spans": whole(stats["docs"]["count"]) - passages,
                "tolerance": self.layout.tolerance,
                "vectors": f"{self.layout.vector_type}, "
                f"{self.layout.dimensions or self.meta.dimension} dimensions",
                "engine": self.layout.engine,
                "roots": self.roots(),
            },
        )

    @reads_answers
    def count(self) -> int:
        body = {"size": 0, "aggs": {"complete": {"value_count": {"field": "document_hash"}}}}
        return whole(self._cluster.search(body)["aggregations"]["complete"]["value"])

    @reads_answers
    def roots(self) -> dict[str, str]:
        roots: dict[str, str]
        (roots,) = typed({"roots": {}, **self._cluster.notes()["slice_os"]}, roots=dict)
        return roots

    def sources(self) -> Iterator[tuple[str, str]]:
        self._cluster.refresh()
        return self._cluster.sources()

    @reads_answers
    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        entries = self._cluster.entries(documents)
        self._known |= {document: entries.get(document, []) for document in documents}
        # Whoever only compares takes none of them; a writer that misses one looks it up.
        known = list(self._known.items())
        count = sum(len(some) for _, some in known)
        for name, some in known[: -len(documents)]:
            if len(self._known) <= KNOWN_DOCUMENTS and count <= KNOWN_PASSAGES:
                break
            count -= len(some)
            self._known.pop(name, None)
        return {document: stored_document(some) for document, some in entries.items()}

    def matching(self, filters: Sequence[Filter]) -> list[str]:
        found = self._cluster.sources(filter_clauses(filters))
        return list(dict.fromkeys(document for document, _ in found))

    @reads_answers
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
                typed({"title": "", **first.get(name, {})}, title=str)[0],
                whole(bucket["words"]["value"]),
                whole(bucket["doc_count"]),
                flat_metadata(stored_metadata(first.get(name, {}))),
            )
            for name, bucket in buckets.items()
        ]

    def read(self, document: str, numbers: range | None = None) -> tuple[Metadata, list[Passage]]:
        known = document.encode("utf-8", "replace")
        if len(known) > LONGEST_TERM:
            return {}, []
        clauses: list[dict[str, Any]] = [{"term": {"document": known.decode()}}]
        if numbers is not None:
            clauses.append({"range": {"passage": {"gte": numbers.start, "lt": numbers.stop}}})
        wanted = [*TEXT, "metadata", "unindexed"]
        found = list(self._cluster.fields({"bool": {"filter": clauses}}, wanted))
        with reading(self._cluster.url):
            metadata = flat_metadata(stored_metadata(found[0])) if found else {}
            return metadata, [stored_text(source) for source in found]

    def passages(
        self,
        filters: Sequence[Filter] = (),
        after: tuple[str, int] | None = None,
        documents: Sequence[str] | None = None,
    ) -> Iterator[StoredPassage]:
        clauses = filter_clauses(filters)
        if documents is None:
            self._cluster.refresh()
        else:
            clauses.append({"terms": {"document": list(documents)}})
        body = {
            "query": {"bool": {"filter": clauses}},
            "sort": [{"document": "asc"}, {"passage": "asc"}, "_shard_doc"],
            "_source": STORED,
        }
        last = None if after is None else (*after, LAST)
        for page in self._cluster.pages(body, WORDS_PAGE, last):
            # Metadata as it was given: filters and hits have it flat.
            with reading(self._cluster.url):
                found = [(stored_passage(hit), stored_metadata(hit["_source"])) for hit in page]
            for stored, metadata in found:
                yield replace(stored, metadata=metadata)

    @reads_answers
    def has_field(self, name: str) -> bool:
        if name not in self._fields:
            clauses = filter_clauses([Filter(name, "exists", "")])
            body = {"size": 0, "terminate_after": 1, "query": {"bool": {"filter": clauses}}}
            if whole(self._cluster.search(body, soon=True)["hits"]["total"]["value"]) == 0:
                return False
            self._fields.add(name)
        return True

    def fields(self) -> list[str]:
        return list(self._cluster.field_names())

    @reads_answers
    def candidates(self, queries: Sequence[SearchQuery]) -> list[list[Candidate]]:
        for query in queries:
            self.check_wording(query.filters)
        found = [self._retriever.candidates(query) for query in queries]
        if not any(found):
            self.forget()
            self._check_emptied()
        return found

    def exactness(self, query: SearchQuery) -> float:
        return self._retriever.exactness(query)

    def _check_emptied(self) -> None:
        """Raise if the alias names an empty generation beside a full one: _rollover does that."""
        if full := self._cluster.fuller():
            raise LocationError(
                f"{self.location} names the empty {self._cluster.index}, and {full} holds "
                f"documents (_rollover does that): 'slice-os doctor --index {self.location}' says "
                "how to go back."
            )

    def scan(
        self, query: MiningQuery, on_progress: Callable[[float], object] = lambda share: None
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        self.check_wording(query.filters)
        scan = Scan(self._cluster, self.layout, query, on_progress)
        # The degree of fewer dimensions, or of codes, says too little.
        true = self.layout.dimensions is None and self._cluster.dialect.keeps_degrees(self.layout)
        by_graph = query.graph and true and scan.graph_pays()
        found = scan.by_graph() if by_graph else scan.every_word()
        first = next(found, None)
        if first is None:
            self._check_emptied()
            return
        yield first
        yield from found

    def writer(
        self,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        former: Writer | None = None,
    ) -> ClusterWriter:
        is_live = self._uuid is not None
        return ClusterWriter(
            self._cluster, self.meta, self.layout, self._known, on_reject, former, is_live=is_live
        )

    def is_live(self) -> bool:
        return self._cluster.generations() == {self._cluster.index: self._uuid}

    def was_live(self) -> bool:
        asked = time.monotonic()
        if asked - self._seen_live < REMEMBERED and self._moves == _moves[self.location]:
            return True
        now = self._cluster.generations(retry_timeout=RETRY_TIMEOUT, soon=True)
        if now != {self._cluster.index: self._uuid}:
            return False
        self._seen_live, self._moves = asked, _moves[self.location]
        return True

    def forget(self) -> None:
        self._seen_live = -math.inf
        self._fields.clear()

    def generations(self) -> list[Generation]:
        return list_generations(self._cluster)

    @reads_answers
    def generation(self, number: int) -> ClusterBackend:
        index = GENERATION.format(self._cluster.address.name, number)
        cluster = Cluster(self._cluster.client, self._cluster.dialect, index)
        mappings, settings = cluster.describe()
        meta, layout = read_meta(index, mappings, settings, cluster.dialect)
        has_exact = "exact" in mappings["properties"]["text"].get("fields", {})
        return ClusterBackend(cluster, meta, layout, has_exact)

    def next_generation(self, meta: IndexMeta, settings: Mapping[str, Any]) -> ClusterBackend:
        number = max(one.number for one in self.generations()) + 1
        layout = Layout.of({**asdict(self.layout), **settings})
        if layout.dimensions == meta.dimension or "dimensions" not in settings:
            kept = layout.dimensions if meta.dimension == self.meta.dimension else None
            layout = replace(layout, dimensions=None if kept == meta.dimension else kept)
        return ClusterBackend(
            make_generation(self._cluster, number, meta, layout), meta, layout, has_exact=True
        )

    def note_build(self, build: Mapping[str, Any] | None, token: object = ...) -> bool:
        return note_build(self._cluster, build, token)

    def swap(self, number: int) -> None:
        index = GENERATION.format(self._cluster.address.name, number)
        lift_block(Cluster(self._cluster.client, self._cluster.dialect, index))
        move_alias(self._cluster, number)
        _moves[self.location] += 1

    def drop(self, number: int) -> None:
        index = GENERATION.format(self._cluster.address.name, number)
        self._cluster.client.request("DELETE", f"/{index}")

    @contextmanager
    def hold(self, *, wait: bool = True) -> Iterator[None]:
        note_hold(self._cluster, held=True)
        try:
            block(self._cluster)
            yield
        finally:
            if self._cluster.index in self._cluster.generations():
                lift_block(self._cluster)
            note_hold(self._cluster, held=False)

    def changes(self) -> object:
        return changes(self._cluster)

    def close(self) -> None:
        self._cluster.client.close()


@reads_answers
def _applied(client: Client) -> dict[str, Any] | None:
    """Return the encoder of the template that `templates apply` put there; None: there is none."""
    try:
        found = client.request("GET", f"/_index_template/{client.address.name}")
    except ClusterError:  # there is none, or it is not ours to know
        return None
    (one,) = found["index_templates"]
    mappings = one["index_template"].get("template", {}).get("mappings", {})
    ours = mappings.get("_meta", {}).get("slice_os", {})
    if "encoder" not in ours:
        return None
    encoder: dict[str, Any] = typed(ours, encoder=dict)[0]
    typed(encoder, name=str, weights_hash=str)
    return encoder


def _make(client: Client, index: str, body: dict[str, Any]) -> bool:
    """Make an index; False if it is there."""
    try:
        client.request("PUT", f"/{index}", body)
    except RefusedError as exc:
        if exc.kind == "resource_already_exists_exception":
            return False
        raise
    return True
