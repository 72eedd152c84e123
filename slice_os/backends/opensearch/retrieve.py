"""Search in a cluster: candidates from the stored spans, scored again over all spans.

The stored spans are a cover, so the cluster's degree of a passage is a little too low, by how much
differs. The best candidates, a block of them, are therefore scored exactly, from their words
(`backends.relevance`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any, NamedTuple

from slice_os.backends.base import Candidate, ClusterSettings, IndexMeta, Retrieval, StoredPassage
from slice_os.backends.opensearch.cluster import WORDS_PAGE, Cluster
from slice_os.backends.opensearch.documents import stored_metadata
from slice_os.backends.opensearch.encoding import unpack_words
from slice_os.backends.relevance import exact_degree, is_scored_again, is_short, score_page
from slice_os.errors import IndexDamagedError, QueryError
from slice_os.filters import flat_metadata
from slice_os.fusion import get_fusion
from slice_os.lexical import MAX_TERMS
from slice_os.query import hybrid_query, lexical_query, span_query
from slice_os.records import Passage, content_hash

NEAREST = 200
"""Passages that the graph is asked for: with the ranks that are scored again, the fewest that find
98 % of the exact ten best. Of 100 nearest, a fused search misses passages whose words match but
whose degree nobody computed."""
COVERED = 0.75
"""A hybrid search scores as many more ranks again, 40 instead of 30, as the order by at most 149
stored spans is coarser than that by all: recall of the exact ten best is then 0.98 as well."""
SHORT_NEAREST = 800
"""The same for short queries, to which many passages are near."""
LEG = 50
"""Ranks of the dense leg that are scored again before two rankings are fused: there ranks count."""
WINDOW = 10_000
"""index.max_result_window: what one search of a cluster reaches."""
DEEP = 1000
"""Passages that the graph is asked for where a page reaches beyond those."""
PLACED = ["document", "passage", "title", "text", "start", "end"]
"""The fields that a passage is read from."""
DESCRIBED = ["document", "title", "metadata", "unindexed"]
"""The fields that say what a document is."""
STORED = [*PLACED, "metadata", "unindexed", "words"]
"""The fields that a stored passage is read from: no span vectors."""
KEYS: dict[str, Any] = {
    "_source": False,
    "stored_fields": "_none_",
    "docvalue_fields": ["document", "passage"],
}
"""Asks for hits by their doc values alone: opening what is stored of each, be it for its _id, takes
most of the time of a long ranking."""


class _Key(NamedTuple):
    """What tells a passage from all others."""

    document: str
    passage: int

    @classmethod
    def of(cls, hit: Mapping[str, Any]) -> _Key:
        """Return the key of a hit that was asked for `KEYS`."""
        return cls(hit["fields"]["document"][0], hit["fields"]["passage"][0])

    def clause(self) -> dict[str, Any]:
        """Return the query that finds the passage."""
        return {"bool": {"filter": [{"term": {n: v}} for n, v in self._asdict().items()]}}


class Retriever:
    """Answers retrievals from one index."""

    def __init__(self, cluster: Cluster, meta: IndexMeta, settings: ClusterSettings) -> None:
        self._cluster = cluster
        self._vectors: dict[str, Any] = {
            "vector_type": settings.vector_type,
            "dimensions": settings.dimensions,
            "spans": 0,
        }
        self._kept = (settings.dimensions or meta.dimension) / meta.dimension

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
        end = max(wanted.reach, wanted.offset + wanted.size)
        nearest = next(n for n in (nearest, DEEP, WINDOW) if end <= n)
        kept = self._kept
        if wanted.mode == "hybrid" and not is_short(wanted):
            kept *= COVERED
        return score_page(wanted, partial(self._found, wanted, nearest), kept)

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
        body = lexical_query(_text(wanted.text), filters=wanted.filters)
        body |= {"sort": [{"_score": "desc"}, "_shard_doc"], **KEYS}
        ranked: list[dict[str, Any]] = []
        passed = 0
        for page in self._cluster.pages(body):
            ranked += [
                hit for rank, hit in enumerate(page, start=passed) if wanted.offset <= rank < end
            ]
            passed += len(page)
            if passed >= end:
                break
        stored = self._stored([_Key.of(hit) for hit in ranked])
        return [
            Candidate(hit["_score"], stored[key])
            for hit in ranked
            if (key := _Key.of(hit)) in stored  # one may have been deleted meanwhile
        ]

    def _fused(self, wanted: Retrieval) -> list[Candidate]:
        """Fuse two rankings, the same way whatever plugins the cluster has."""
        options: dict[str, Any] = {"size": wanted.depth, "filters": wanted.filters}
        bodies = [
            lexical_query(_text(wanted.text), **options),
            span_query(wanted.vector, k=wanted.depth, **options, **self._vectors),
        ]
        lexical, dense = (
            {_Key.of(hit): hit["_score"] for hit in answer["hits"]["hits"]}
            for answer in self._cluster.msearch([{**body, **KEYS} for body in bodies])
        )
        degrees = dict(list(dense.items())[: wanted.depth])  # k passages of every shard have come
        for key, stored in self._stored(list(degrees)[: ceil(LEG / self._kept)]).items():
            degrees[key] = exact_degree(stored, wanted)
        fusion, weight = get_fusion(wanted.fusion, wanted.weight)
        fused = fusion.fuse(degrees, lexical, weight)
        ranked = sorted(fused, key=lambda key: -fused[key])
        page = ranked[wanted.offset : wanted.offset + wanted.size]
        found = self._stored(page)
        return [Candidate(fused[key], found[key]) for key in page if key in found]

    def _stored(self, keys: Sequence[_Key]) -> dict[_Key, StoredPassage]:
        """Return some passages; one that has been deleted is left out."""
        found: dict[_Key, StoredPassage] = {}
        for first in range(0, len(keys), WORDS_PAGE):
            some = keys[first : first + WORDS_PAGE]
            query = {"bool": {"should": [key.clause() for key in some]}}
            body = {"query": query, "size": len(some), "_source": STORED}
            for hit in self._cluster.search(body)["hits"]["hits"]:
                stored = stored_passage(hit)
                found[_Key(stored.passage.document, stored.passage.number)] = stored
        return found


def stored_passage(hit: Mapping[str, Any]) -> StoredPassage:
    """Return the passage of a hit that was asked for the fields `STORED`."""
    source = hit["_source"]
    if "words" not in source:
        raise IndexDamagedError(
            f"The passage {hit['_id']} of {hit['_index']} holds no word vectors, so slice-os did "
            "not put it there: delete it."
        )
    words, norms = unpack_words(source["words"])
    metadata = flat_metadata(stored_metadata(source))
    return StoredPassage(stored_place(source), metadata, words, norms)


def stored_place(source: Mapping[str, Any]) -> Passage:
    """Return a passage without its words from the fields `PLACED`."""
    return Passage(
        source["document"],
        source["passage"],
        source["start"],
        source["end"],
        source["text"],
        source.get("title", ""),
    )


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
