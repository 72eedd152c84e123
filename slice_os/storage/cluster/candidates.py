"""Candidates in a cluster, from the stored spans and BM25.

The stored spans are a cover, so the cluster's degree of a passage is a little too low, by how much
differs: `engine.rerank` compares all spans of the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from slice_os.errors import QueryError
from slice_os.spans import best_of_each, degree, word_scores
from slice_os.storage.cluster import queries
from slice_os.storage.cluster.hits import fuse_found, named_score
from slice_os.storage.cluster.passages import packed_passage, stored_metadata
from slice_os.storage.cluster.requests import WORDS_PAGE, Cluster
from slice_os.storage.cluster.responses import (
    KeyHit,
    PassageText,
    RankedHit,
    StoredHit,
)
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.contract import Candidate, IndexMeta, SearchQuery, StoredPassage
from slice_os.storage.fusion import FUSIONS
from slice_os.text import MAX_TERMS
from slice_os.text.filters import flat_metadata
from slice_os.types import Passage, content_hash

NEAREST = 250
"""Passages that the graph is asked for: with the ranks that are reranked, the fewest that find
98 % of the exact ten best (benchmarks/cover.py). Of 100 nearest, a fused search misses passages
whose words match but whose degree nobody computed: what makes the graph's order coarser, fewer
dimensions, needs more of them, and not more ranks that are reranked."""
SHORT_NEAREST = 800
"""The same for short queries, to which many passages are near."""
RERANKED = 50
"""Ranks of the dense list that get their exact degrees before two rankings are fused, and ranks of
the fused list that do so afterwards. Of 300 queries of SciFact, on 3,129 passages, min_max then
finds 0.99 of the ten best of an embedded index (without the second step 0.96), rrf 0.999."""
WINDOW = 10_000
"""index.max_result_window: what one search of a cluster reaches."""
DEEP = 1000
"""Passages that the graph is asked for where a page reaches beyond those."""
TEXT = ["document", "passage", "title", "text", "start", "end"]
"""The fields that a passage is read from."""
DESCRIBED = ["document", "title", "metadata", "unindexed"]
"""The fields that say what a document is."""
STORED = [*TEXT, "metadata", "unindexed", "words"]
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
    def of(cls, hit: KeyHit) -> _Key:
        """Return the key of a hit that was asked for `KEYS`."""
        return cls(hit["fields"]["document"][0], hit["fields"]["passage"][0])

    def clause(self) -> dict[str, Any]:
        """Return the query that finds the passage."""
        return {"bool": {"filter": [{"term": {n: v}} for n, v in self._asdict().items()]}}


class Retriever:
    """Finds the candidates of one index."""

    def __init__(self, cluster: Cluster, meta: IndexMeta, layout: Layout) -> None:
        self._cluster, self._shards = cluster, layout.shards
        self._dialect: dict[str, Any] = {"dialect": cluster.dialect.bodies}
        self._vectors: dict[str, Any] = {
            "vector_type": layout.vector_type,
            "dimensions": layout.dimensions,
            "spans": 0,
            **self._dialect,
        }
        self._kept = (layout.dimensions or meta.dimension) / meta.dimension

    def exactness(self, query: SearchQuery) -> float:
        """See `Backend.exactness`: fewer dimensions order the dense list coarsely."""
        return self._kept if query.mode == "dense" or query.is_short else 1

    def candidates(self, query: SearchQuery) -> list[Candidate]:
        """Return the ranks that a query asks for, best first."""
        if query.mode == "lexical":
            return self._lexical(query)
        if query.reach > WINDOW:
            raise QueryError(
                f"A dense search of a cluster reaches the first {WINDOW:,} passages: narrow it "
                "with filters, or use the mode lexical."
            )
        if query.mode == "hybrid" and not FUSIONS[query.fusion].whole_corpus:
            return self._fused(query)
        # One number for a page: which passages get their true degree in the cluster depends on it.
        nearest = SHORT_NEAREST if query.is_short else NEAREST
        if query.mode == "hybrid" and not query.is_short:
            nearest = min(ceil(nearest / self._kept), WINDOW)
        options: dict[str, Any] = {
            "k": next(n for n in (nearest, DEEP, WINDOW) if query.reach <= n),
            "filters": query.filters,
            **self._vectors,
        }
        text, vector = _text(query.text), query.vector
        # The same copy of a shard for the same query: two copies' graphs differ.
        params: dict[str, Any] = {"preference": content_hash(text), "soon": True}
        if query.mode == "hybrid" and not self._cluster.dialect.is_saturating:
            return self._saturated(query, text, options, params)
        size = min(len(query.ranks), WINDOW - query.ranks.start)
        options |= {"size": size, "offset": query.ranks.start}
        if query.mode == "dense":
            body = queries.span_query(vector, **options)
        else:
            params["include_named_queries_score"] = "true"
            body = queries.hybrid_query(text, vector, weight=query.weight, **options)
        return self._found({**body, "_source": STORED}, **params)

    def _found(self, body: dict[str, Any], **params: Any) -> list[Candidate]:
        hits = self._cluster.search(body, list[RankedHit], **params)
        return [Candidate(hit["_score"], stored_passage(hit), named_score(hit)) for hit in hits]

    def _saturated(
        self, query: SearchQuery, text: str, options: dict[str, Any], params: dict[str, Any]
    ) -> list[Candidate]:
        """Fuse by saturation here what one search scores that way where it can."""
        near = min(options["k"] * self._shards, WINDOW)
        # What only the text matches ranks by its BM25 score: so many are enough of it.
        size = min(max(query.reach, query.ranks.stop), WINDOW)
        bodies = queries.hybrid_queries(text, query.vector, size=size, found=near, **options)
        by_words, by_meaning = self._ranked(
            bodies,
            {"preference": params["preference"]},
            include_named_queries_score="true",
        )
        named = {key: named_score(hit) for key, hit in by_meaning.items()}
        lexical = {key: score for key, score in named.items() if score is not None}
        lexical |= _scores(by_words)
        fused = fuse_found(lexical, _scores(by_meaning), query.fusion, query.weight)
        return self._page(query, fused, lexical)

    def _lexical(self, query: SearchQuery) -> list[Candidate]:
        ranks, text = query.ranks, _text(query.text)
        options: dict[str, Any] = {"filters": query.filters, **self._dialect}
        if ranks.stop <= WINDOW:
            body = queries.lexical_query(text, size=len(ranks), offset=ranks.start, **options)
            return self._found({**body, "_source": STORED}, soon=True)
        body = queries.lexical_query(text, **options)
        body |= {"sort": [{"_score": "desc"}, "_shard_doc"], **KEYS}
        scores: dict[_Key, float] = {}
        passed = 0
        for page in self._cluster.pages(body, KeyHit):
            wanted = [hit for rank, hit in enumerate(page, start=passed) if rank in ranks]
            scores |= {_Key.of(hit): hit["_score"] for hit in wanted}
            passed += len(page)
            if passed >= ranks.stop:
                break
        return self._read(list(scores), scores)

    def _fused(self, query: SearchQuery) -> list[Candidate]:
        """Fuse two rankings, the same way whatever plugins the cluster has."""
        options: dict[str, Any] = {"size": query.depth, "filters": query.filters}
        bodies = [
            queries.lexical_query(_text(query.text), **options, **self._dialect),
            queries.span_query(query.vector, k=query.depth, **options, **self._vectors),
        ]
        lexical, dense = map(_scores, self._ranked(bodies))
        degrees = dict(list(dense.items())[: query.depth])  # k passages of every shard have come
        most = ceil(RERANKED / self._kept)
        exact = self._degrees(list(degrees)[:most], query)
        fused = fuse_found(lexical, degrees | exact, query.fusion, query.weight)
        best = sorted(fused, key=lambda key: -fused[key])[:most]
        exact |= self._degrees([key for key in best if key in degrees and key not in exact], query)
        fused = fuse_found(lexical, degrees | exact, query.fusion, query.weight)
        return self._page(query, fused)

    def _ranked(
        self,
        bodies: Sequence[dict[str, Any]],
        header: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> list[dict[_Key, KeyHit]]:
        """Return the hits of several searches by their keys, without what is stored of them."""
        asked = [{**body, **KEYS} for body in bodies]
        params |= {"header": header, "soon": True}
        rankings = self._cluster.msearch(asked, list[KeyHit], **params)
        return [{_Key.of(hit): hit for hit in hits} for hits in rankings]

    def _degrees(self, keys: Sequence[_Key], query: SearchQuery) -> dict[_Key, float]:
        """Return the degrees of some passages by all their spans."""
        stored = self._stored(keys)
        packed = [passage.packed for passage in stored.values()]
        scores = [word_scores(passage.vectors, query.vector) for passage in packed]
        best = best_of_each(packed, scores, query.lengths).astype(np.float64)
        return dict(zip(stored, degree(best).tolist(), strict=True))

    def _page(
        self,
        query: SearchQuery,
        fused: Mapping[_Key, float],
        lexical: Mapping[_Key, float] | None = None,
    ) -> list[Candidate]:
        """Return the ranks that a query asks for, of all that was found."""
        ranked = sorted(fused, key=lambda key: -fused[key])
        return self._read(ranked[query.ranks.start : query.ranks.stop], fused, lexical)

    def _read(
        self,
        keys: Sequence[_Key],
        scores: Mapping[_Key, float],
        lexical: Mapping[_Key, float] | None = None,
    ) -> list[Candidate]:
        """Return passages as candidates, in order; one that has been deleted is left out."""
        stored, lexical = self._stored(keys), lexical or {}
        return [
            Candidate(scores[key], stored[key], lexical.get(key)) for key in keys if key in stored
        ]

    def _stored(self, keys: Sequence[_Key]) -> dict[_Key, StoredPassage]:
        """Return some passages; one that has been deleted is left out."""
        passages: dict[_Key, StoredPassage] = {}
        for first in range(0, len(keys), WORDS_PAGE):
            clauses = [key.clause() for key in keys[first : first + WORDS_PAGE]]
            query = {"bool": {"should": clauses}}
            body = {"query": query, "size": len(clauses), "_source": STORED}
            for hit in self._cluster.search(body, list[StoredHit], soon=True):
                stored = stored_passage(hit)
                passages[_Key(stored.passage.document, stored.passage.number)] = stored
        return passages


def _scores(hits: Mapping[_Key, KeyHit]) -> dict[_Key, float]:
    return {key: hit["_score"] for key, hit in hits.items()}


def stored_passage(hit: StoredHit) -> StoredPassage:
    """Return the passage of a hit that was asked for the fields `STORED`."""
    source = hit["_source"]
    metadata = flat_metadata(stored_metadata(source))
    return StoredPassage(stored_text(source), metadata, packed_passage(source["words"]))


def stored_text(source: PassageText) -> Passage:
    """Return a passage without its words from the fields `TEXT`."""
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
