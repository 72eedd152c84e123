"""What is read from an index in a cluster: BM25 fields and span vectors side by side."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from slice_os.errors import LocationError
from slice_os.storage.cluster.candidates import (
    DESCRIBED,
    STORED,
    TEXT,
    Retriever,
    stored_passage,
    stored_text,
)
from slice_os.storage.cluster.cluster_errors import RETRY_TIMEOUT
from slice_os.storage.cluster.generations import full_beside
from slice_os.storage.cluster.mining_scan import Scan
from slice_os.storage.cluster.passages import Entry, stored_document, stored_metadata
from slice_os.storage.cluster.requests import LONGEST_TERM, WORDS_PAGE, Cluster
from slice_os.storage.cluster.responses import (
    Count,
    DocumentHit,
    DocumentSource,
    PassageHit,
    StoredHit,
)
from slice_os.storage.cluster.searches import OURS, PAGE
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.contract import (
    Candidate,
    IndexMeta,
    IndexStatus,
    MiningQuery,
    Reader,
    SearchQuery,
    StoredDocument,
    StoredPassage,
)
from slice_os.storage.filters import filter_clauses
from slice_os.text.filters import Filter, flat_metadata
from slice_os.types import DocumentInfo, Metadata, Passage

KNOWN_DOCUMENTS, KNOWN_PASSAGES = 4096, 50_000
"""What is remembered of what was looked up last."""
REMEMBERED = 5.0
"""Seconds for which a search takes what was live for what is live."""
_moves: Counter[str] = Counter()
"""How often this process has moved a name: what was live before is asked for again."""
LAST = 1 << 62
"""After all passages of a shard."""


class ClusterReader(Reader):
    """What `ClusterBackend` reads; see `Reader` for the contract."""

    def __init__(
        self, cluster: Cluster, meta: IndexMeta, layout: Layout, uuid: str | None = None
    ) -> None:
        """Take a generation; one without `uuid` is not the live one."""
        self.cluster, self.meta, self.layout, self._uuid = cluster, meta, layout, uuid
        self.effort = cluster.client.effort
        self.location = str(cluster.address)
        self.connection: Mapping[str, Any] = cluster.client.connection
        self._retriever = Retriever(cluster, meta, layout)
        self._known: dict[str, list[Entry]] = {}
        self._seen_live = time.monotonic()
        self._moves = _moves[self.location]
        self._fields: set[str] = set()

    def status(self) -> IndexStatus:
        aggregations = {
            "passages": {"value_count": {"field": "passage"}},
            "words": {"sum": {"field": "word_count"}},
            "complete": {"value_count": {"field": "document_hash"}},
            "begun": {"filter": {"term": {"passage": 0}}},
        }
        self.cluster.refresh()
        paths = ("passages/value", "words/value", "complete/value", "begun/doc_count")
        passages, words, complete, begun = self.cluster.aggregate(aggregations, *paths)
        return IndexStatus(
            self.location,
            self.cluster.dialect.name,
            self.meta,
            complete,
            passages,
            words,
            self.cluster.bytes(),
            {
                "incomplete_documents": max(begun - complete, 0),
                "generation": self.cluster.index,
                "spans": self.cluster.statistic("docs/count") - passages,
                "tolerance": self.layout.tolerance,
                "vectors": f"{self.layout.vector_type}, "
                f"{self.layout.dimensions or self.meta.dimension} dimensions",
                "engine": self.layout.engine,
                "roots": self.roots(),
            },
        )

    def count(self) -> int:
        complete = {"complete": {"value_count": {"field": "document_hash"}}}
        return self.cluster.aggregate(complete, "complete/value")[0]

    def roots(self) -> dict[str, str]:
        return self.cluster.notes().get("roots") or {}

    def sources(self) -> Iterator[tuple[str, str]]:
        self.cluster.refresh()
        return self.cluster.sources()

    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        entries = self.cluster.entries(documents)
        self._known |= {document: entries.get(document, []) for document in documents}
        # Whoever only compares takes none of them; a writer that misses one looks it up.
        known = list(self._known.items())
        count = sum(len(passages) for _, passages in known)
        for name, passages in known[: -len(documents)]:
            if len(self._known) <= KNOWN_DOCUMENTS and count <= KNOWN_PASSAGES:
                break
            count -= len(passages)
            self._known.pop(name, None)
        return {document: stored_document(passages) for document, passages in entries.items()}

    def matching(self, filters: Sequence[Filter]) -> list[str]:
        sources = self.cluster.sources(filter_clauses(filters))
        return list(dict.fromkeys(document for document, _ in sources))

    def documents(
        self, filters: Sequence[Filter], size: int, offset: int = 0
    ) -> list[DocumentInfo]:
        matching = self.cluster.documents(filter_clauses(filters))
        page = islice(matching, offset, offset + size)
        buckets = {bucket.key.document: bucket for bucket in page}
        ids, first = list(buckets), dict[str, DocumentSource]()
        for start in range(0, len(ids), PAGE):
            clauses = [{"terms": {"document": ids[start : start + PAGE]}}, {"term": {"passage": 0}}]
            body = {"query": {"bool": {"filter": clauses}}, "_source": DESCRIBED}
            for hit in self.cluster.in_order(body, DocumentHit):
                first[hit["_source"]["document"]] = hit["_source"]
        return [
            DocumentInfo(
                name,
                first[name].get("title", "") if name in first else "",
                int(bucket.words.value),
                bucket.doc_count,
                flat_metadata(stored_metadata(first.get(name, {}))),
            )
            for name, bucket in buckets.items()
        ]

    def read(self, document: str, numbers: range | None = None) -> tuple[Metadata, list[Passage]]:
        name = document.encode("utf-8", "replace")
        if len(name) > LONGEST_TERM:
            return {}, []
        clauses: list[dict[str, Any]] = [{"term": {"document": name.decode()}}, OURS]
        if numbers is not None:
            clauses.append({"range": {"passage": {"gte": numbers.start, "lt": numbers.stop}}})
        wanted = [*TEXT, "metadata", "unindexed"]
        body = {"query": {"bool": {"filter": clauses}}, "_source": wanted}
        sources = [hit["_source"] for hit in self.cluster.in_order(body, PassageHit)]
        metadata = flat_metadata(stored_metadata(sources[0])) if sources else {}
        return metadata, [stored_text(source) for source in sources]

    def passages(
        self,
        filters: Sequence[Filter] = (),
        after: tuple[str, int] | None = None,
        documents: Sequence[str] | None = None,
    ) -> Iterator[StoredPassage]:
        clauses = filter_clauses(filters)
        if documents is None:
            self.cluster.refresh()
        else:
            clauses.append({"terms": {"document": list(documents)}})
        body = {
            "query": {"bool": {"filter": clauses}},
            "sort": [{"document": "asc"}, {"passage": "asc"}, "_shard_doc"],
            "_source": STORED,
        }
        last = None if after is None else (*after, LAST)
        for page in self.cluster.pages(body, StoredHit, WORDS_PAGE, last):
            for hit in page:
                # Metadata as it was given: filters and hits have it flat.
                yield replace(stored_passage(hit), metadata=stored_metadata(hit["_source"]))

    def has_field(self, name: str) -> bool:
        if name not in self._fields:
            clauses = filter_clauses([Filter(name, "exists", "")])
            body = {"size": 0, "terminate_after": 1, "query": {"bool": {"filter": clauses}}}
            if self.cluster.search(body, Count, "hits/total/value", soon=True) == 0:
                return False
            self._fields.add(name)
        return True

    def fields(self) -> list[str]:
        return list(self.cluster.field_names())

    def candidates(self, queries: Sequence[SearchQuery]) -> list[list[Candidate]]:
        candidates = [self._retriever.candidates(query) for query in queries]
        if not any(candidates):
            self.forget()
            self._check_emptied()
        return candidates

    def exactness(self, query: SearchQuery) -> float:
        return self._retriever.exactness(query)

    def _check_emptied(self) -> None:
        """Raise if the alias names an empty generation beside a full one: _rollover does that."""
        if full := full_beside(self.cluster):
            raise LocationError(
                f"{self.location} names the empty {self.cluster.index}, and {full} holds "
                "documents (_rollover does that)",
                hint=f"'slice-os doctor --index {self.location}' says how to go back.",
            )

    def scan(
        self, query: MiningQuery, on_progress: Callable[[float], object] = lambda share: None
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        scan = Scan(self.cluster, self.layout, query, on_progress)
        # The degree of fewer dimensions, or of codes, says too little.
        exact = self.layout.dimensions is None and self.cluster.dialect.keeps_degrees(self.layout)
        by_graph = query.graph and exact and scan.graph_pays()
        passages = scan.by_graph() if by_graph else scan.every_word()
        first = next(passages, None)
        if first is None:
            self._check_emptied()
            return
        yield first
        yield from passages

    def is_live(self) -> bool:
        return self.cluster.generations() == {self.cluster.index: self._uuid}

    def was_live(self) -> bool:
        asked = time.monotonic()
        if asked - self._seen_live < REMEMBERED and self._moves == _moves[self.location]:
            return True
        now = self.cluster.generations(retry_timeout=RETRY_TIMEOUT, soon=True)
        if now != {self.cluster.index: self._uuid}:
            return False
        self._seen_live, self._moves = asked, _moves[self.location]
        return True

    def forget(self) -> None:
        self._seen_live = -math.inf
        self._fields.clear()

    def note_move(self) -> None:
        """Have this process ask again which generation is live."""
        _moves[self.location] += 1
