"""Search in a cluster: candidates from the stored spans, scored again over all spans.

The stored spans are a cover, so the cluster's degree of a passage is a little too low, by how much
differs. The best candidates, a block of them, are therefore scored exactly, from their words
(`backends.relevance`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import ceil
from typing import Any, NamedTuple

from slice_os.backends.base import Candidate, ClusterSettings, IndexMeta, Retrieval, StoredPassage
from slice_os.backends.opensearch.cluster import WORDS_PAGE, Cluster
from slice_os.backends.opensearch.encoding import unpack_words
from slice_os.backends.relevance import exact_degree, is_scored_again, is_short, score_page
from slice_os.errors import ClusterError, IndexDamagedError, QueryError
from slice_os.filters import flat_metadata
from slice_os.fusion import get_fusion
from slice_os.lexical import MAX_TERMS
from slice_os.query import (
    hybrid_query,
    lexical_query,
    normalization_pipeline,
    rrf_pipeline,
    span_query,
)
from slice_os.records import Passage, content_hash

NEAREST = 200
"""Passages that the graph is asked for: with the ranks that are scored again, the fewest that find
98 % of the exact ten best. Of 100 nearest, a fused search misses passages whose words match but
whose degree nobody computed."""
SHORT_NEAREST = 800
"""The same for short queries, to which many passages are near."""
LEG = 50
"""Ranks of the dense leg that are scored again before two rankings are fused: there ranks count."""
WINDOW = 10_000
"""index.max_result_window: what one search of a cluster reaches."""
DEEP = 1000
"""Passages that the graph is asked for where a page reaches beyond those."""
STORED = [
    "document", "passage", "title", "text", "metadata", "unindexed", "start", "end", "words",
]  # fmt: skip
"""The fields that a stored passage is read from: no span vectors."""


class _Ranked(NamedTuple):
    """A hit before its passage is fetched."""

    id: str
    score: float


class Retriever:
    """Answers retrievals from one index."""

    def __init__(self, cluster: Cluster, meta: IndexMeta, settings: ClusterSettings) -> None:
        self._cluster, self._meta, self._settings = cluster, meta, settings
        self._vectors: dict[str, Any] = {
            "vector_type": settings.vector_type,
            "dimensions": settings.dimensions,
            "spans": 0,
        }
        self._kept = (settings.dimensions or meta.dimension) / meta.dimension

    @cached_property
    def has_hybrid(self) -> bool:
        """Whether every node can answer a `hybrid` query."""
        try:
            return "opensearch-neural-search" in plugins(self._cluster)
        except ClusterError:  # it may not be ours to know
            return False

    def retrieve(self, wanted: Retrieval) -> list[Candidate]:
        """Return the page that a retrieval asks for, best first."""
        if wanted.mode == "lexical":
            return self._lexical(wanted)
        if wanted.offset + wanted.size > WINDOW:
            raise QueryError(
                f"A dense search of a cluster reaches the first {WINDOW:,} passages: narrow it "
                "with filters, or use the mode lexical."
            )
        if not is_scored_again(wanted.mode, wanted.fusion):
            return self._fused(wanted)
        # One number for a page: which passages get their true degree in the cluster depends on it.
        nearest = SHORT_NEAREST if is_short(wanted) else NEAREST
        nearest = next(n for n in (nearest, DEEP, WINDOW) if wanted.offset + wanted.size <= n)
        return score_page(wanted, partial(self._found, wanted, nearest), self._kept)

    def _found(
        self, wanted: Retrieval, nearest: int, offset: int, size: int
    ) -> list[tuple[StoredPassage, float | None]]:
        """Return some ranks of what the stored spans find, with the BM25 score of each."""
        options: dict[str, Any] = {
            "size": min(size, WINDOW - offset),
            "offset": offset,
            "k": nearest,
            "filters": wanted.filters,
        }
        # The same copy of a shard for the same query: two copies' graphs differ.
        params: dict[str, Any] = {"preference": content_hash(_text(wanted.text))}
        if wanted.mode == "dense":
            body = span_query(wanted.vector, **options, **self._vectors)
        else:
            body = hybrid_query(
                _text(wanted.text),
                wanted.vector,
                weight=wanted.weight,
                **options,
                **self._vectors,
            )
            params["include_named_queries_score"] = "true"
        hits = self._cluster.search({**body, "_source": STORED}, **params)["hits"]["hits"]
        return [
            (stored_passage(hit), (hit.get("matched_queries") or {}).get("lexical")) for hit in hits
        ]

    def _lexical(self, wanted: Retrieval) -> list[Candidate]:
        end = wanted.offset + wanted.size
        if end <= WINDOW:
            body = lexical_query(
                _text(wanted.text), size=wanted.size, offset=wanted.offset, filters=wanted.filters
            )
            hits = self._cluster.search({**body, "_source": STORED})["hits"]["hits"]
            return [Candidate(hit["_score"], stored_passage(hit)) for hit in hits]
        body = lexical_query(_text(wanted.text), filters=wanted.filters, source=())
        body["sort"] = [{"_score": "desc"}, "_shard_doc"]
        ranked: list[_Ranked] = []
        passed = 0
        for page in self._cluster.pages(body):
            ranked += [
                _Ranked(hit["_id"], hit["_score"])
                for rank, hit in enumerate(page, start=passed)
                if wanted.offset <= rank < end
            ]
            passed += len(page)
            if passed >= end:
                break
        return self._fetch(ranked)

    def _fused(self, wanted: Retrieval) -> list[Candidate]:
        """Fuse two rankings: by the cluster where it has the plugin, else here."""
        ranked = self._hybrid(wanted) if self.has_hybrid else self._legs(wanted)
        return self._fetch(ranked[wanted.offset : wanted.offset + wanted.size])

    def _hybrid(self, wanted: Retrieval) -> list[_Ranked]:
        weight = get_fusion(wanted.fusion, wanted.weight)[1]
        body = hybrid_query(
            _text(wanted.text),
            wanted.vector,
            fusion=wanted.fusion,
            weight=weight,
            size=wanted.offset + wanted.size,
            k=wanted.depth,
            pagination_depth=wanted.depth,
            filters=wanted.filters,
            source=(),
            **self._vectors,
        )
        if wanted.fusion == "rrf":
            body["search_pipeline"] = rrf_pipeline(weight=weight)
        else:
            body["search_pipeline"] = normalization_pipeline(0.5 if weight is None else weight)
        return _ranked(self._cluster.search(body))

    def _legs(self, wanted: Retrieval) -> list[_Ranked]:
        options: dict[str, Any] = {
            "size": wanted.depth,
            "filters": wanted.filters,
            "source": (),
        }
        bodies = [
            lexical_query(_text(wanted.text), **options),
            span_query(wanted.vector, k=wanted.depth, **options, **self._vectors),
        ]
        lexical, dense = (_ranked(answer) for answer in self._cluster.msearch(bodies))
        dense = dense[: wanted.depth]  # k passages of every shard have come
        degrees = dict(dense)
        best = [one for one, _ in dense[: ceil(LEG / self._kept)]]
        for hit in self._hits(best):
            degrees[hit["_id"]] = exact_degree(stored_passage(hit), wanted)
        fusion, weight = get_fusion(wanted.fusion, wanted.weight)
        fused = fusion.fuse(degrees, dict(lexical), weight)
        return [_Ranked(one, fused[one]) for one in sorted(fused, key=lambda one: -fused[one])]

    def _fetch(self, ranked: Sequence[_Ranked]) -> list[Candidate]:
        """Return candidates with their passages; one deleted meanwhile is left out."""
        stored = {hit["_id"]: stored_passage(hit) for hit in self._hits([one.id for one in ranked])}
        return [Candidate(one.score, stored[one.id]) for one in ranked if one.id in stored]

    def _hits(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for first in range(0, len(ids), WORDS_PAGE):
            some = list(ids[first : first + WORDS_PAGE])
            body = {"query": {"ids": {"values": some}}, "size": len(some), "_source": STORED}
            found += self._cluster.search(body)["hits"]["hits"]
        return found


def _ranked(answer: dict[str, Any]) -> list[_Ranked]:
    return [_Ranked(hit["_id"], hit["_score"]) for hit in answer["hits"]["hits"]]


def stored_passage(hit: Mapping[str, Any]) -> StoredPassage:
    """Return the passage of a hit that was asked for the fields `STORED`."""
    source = hit["_source"]
    if "words" not in source:
        raise IndexDamagedError(
            f"The passage {hit['_id']} of {hit['_index']} holds no word vectors, so slice-os did "
            "not put it there: delete it."
        )
    words, norms = unpack_words(source["words"])
    passage = Passage(
        source["document"],
        source["passage"],
        source["start"],
        source["end"],
        source["text"],
        source.get("title", ""),
    )
    metadata = {**source.get("metadata", {}), **source.get("unindexed", {})}
    return StoredPassage(passage, flat_metadata(metadata), words, norms)


def _text(query: str) -> str:
    """Return a query that the cluster takes: no half characters, not too many clauses."""
    words = query.encode("utf-8", "replace").decode().split()
    if len(words) > MAX_TERMS:
        words = list(dict.fromkeys(words))[:MAX_TERMS]
    return " ".join(words)


def plugins(cluster: Cluster) -> set[str]:
    """Return the plugins that every node has."""
    rows = cluster.ask(lambda: cluster.client.cat.plugins(params={"format": "json"}))
    nodes = cluster.ask(lambda: cluster.client.cat.nodes(params={"format": "json", "h": "name"}))
    by_name: dict[str, set[str]] = {}
    for row in rows:
        by_name.setdefault(row["component"], set()).add(row["name"])
    return {name for name, on in by_name.items() if len(on) == len(nodes)}
