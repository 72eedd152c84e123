"""Candidates in a cluster, from the stored spans and BM25.

The stored spans are a cover, so the cluster's degree of a passage is a little too low, by how much
differs: `engine.rerank` compares all spans of the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from slice_os.errors import IndexDamagedError, QueryError
from slice_os.spans import best_of_each, degree, word_scores
from slice_os.storage.cluster.passages import packed_passage, stored_metadata
from slice_os.storage.cluster.query.hits import fuse_found, named_score
from slice_os.storage.cluster.requests import WORDS_PAGE, Cluster
from slice_os.storage.cluster.response_checks import number, reads_answers, typed
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.contract import Candidate, IndexMeta, SearchQuery, StoredPassage
from slice_os.storage.fusion import FUSIONS
from slice_os.text import MAX_TERMS
from slice_os.text.filters import flat_metadata
from slice_os.types import Passage, content_hash

NEAREST = 200
"""Passages that the graph is asked for: with the ranks that are reranked, the fewest that find
98 % of the exact ten best. Of 100 nearest, a fused search misses passages whose words match but
whose degree nobody computed."""
COVERED = 0.75
"""The exactness of the order by at most 149 stored spans: a hybrid search reranks 40 passages
instead of 30, and recall of the exact ten best is then 0.98 as well."""
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
    def of(cls, hit: Mapping[str, Any]) -> _Key:
        """Return the key of a hit that was asked for `KEYS`."""
        values = {name: hit["fields"][name][0] for name in cls._fields}
        return cls(*typed(values, document=str, passage=int))

    def clause(self) -> dict[str, Any]:
        """Return the query that finds the passage."""
        return {"bool": {"filter": [{"term": {n: v}} for n, v in self._asdict().items()]}}


@reads_answers
class Retriever:
    """Finds the candidates of one index."""

    def __init__(self, cluster: Cluster, meta: IndexMeta, layout: Layout) -> None:
        self._cluster, self._dialect = cluster, cluster.dialect
        self._vectors: dict[str, Any] = {
            "vector_type": layout.vector_type,
            "dimensions": layout.dimensions,
            "spans": 0,
        }
        self._shards = layout.shards
        self._kept = (layout.dimensions or meta.dimension) / meta.dimension

    def exactness(self, query: SearchQuery) -> float:
        """See `Backend.exactness`: fewer dimensions, and fewer spans than all, order coarsely."""
        covered = query.mode == "hybrid" and not query.is_short
        return self._kept * (COVERED if covered else 1)

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
        common = {
            "k": next(n for n in (nearest, DEEP, WINDOW) if query.reach <= n),
            "filters": query.filters,
            **self._vectors,
        }
        text = _text(query.text)
        # The same copy of a shard for the same query: two copies' graphs differ.
        params: dict[str, Any] = {"preference": content_hash(text)}
        if query.mode == "hybrid":
            if self._dialect.hybrid_query is None:
                return self._saturated(query, text, common, params)
            params["include_named_queries_score"] = "true"
        options: dict[str, Any] = {
            "size": min(len(query.ranks), WINDOW - query.ranks.start),
            "offset": query.ranks.start,
            **common,
        }
        if query.mode == "dense" or self._dialect.hybrid_query is None:
            body = self._dialect.span_query(query.vector, **options)
        else:
            weight = query.weight
            body = self._dialect.hybrid_query(text, query.vector, weight=weight, **options)
        hits = self._cluster.search({**body, "_source": STORED}, soon=True, **params)["hits"][
            "hits"
        ]
        return [Candidate(number(hit["_score"]), stored_passage(hit), _named(hit)) for hit in hits]

    def _saturated(
        self, query: SearchQuery, text: str, options: dict[str, Any], header: dict[str, Any]
    ) -> list[Candidate]:
        """Fuse by saturation here what one search scores that way where it can."""
        near = min(options["k"] * self._shards, WINDOW)
        # What only the text matches ranks by its BM25 score: so many are enough of it.
        size = min(max(query.reach, query.ranks.stop), WINDOW)
        bodies = self._dialect.hybrid_queries(text, query.vector, size=size, found=near, **options)
        by_words, by_meaning = (
            answer["hits"]["hits"]
            for answer in self._cluster.msearch(
                [{**body, **KEYS} for body in bodies],
                header,
                soon=True,
                include_named_queries_score="true",
            )
        )
        degrees = {_Key.of(hit): number(hit["_score"]) for hit in by_meaning}
        named = {_Key.of(hit): _named(hit) for hit in by_meaning}
        lexical = {key: score for key, score in named.items() if score is not None}
        lexical |= {_Key.of(hit): number(hit["_score"]) for hit in by_words}
        fused = fuse_found(lexical, degrees, query.fusion, query.weight)
        return self._page(query, fused, lexical)

    def _lexical(self, query: SearchQuery) -> list[Candidate]:
        ranks, text = query.ranks, _text(query.text)
        options: dict[str, Any] = {"filters": query.filters}
        if ranks.stop <= WINDOW:
            options |= {"size": len(ranks), "offset": ranks.start}
            body = self._dialect.lexical_query(text, **options)
            hits = self._cluster.search({**body, "_source": STORED}, soon=True)["hits"]["hits"]
            return [Candidate(number(hit["_score"]), stored_passage(hit)) for hit in hits]
        body = self._dialect.lexical_query(text, **options)
        body |= {"sort": [{"_score": "desc"}, "_shard_doc"], **KEYS}
        ranked: list[dict[str, Any]] = []
        passed = 0
        for page in self._cluster.pages(body):
            ranked += [hit for rank, hit in enumerate(page, start=passed) if rank in ranks]
            passed += len(page)
            if passed >= ranks.stop:
                break
        stored = self._stored([_Key.of(hit) for hit in ranked])
        return [
            Candidate(number(hit["_score"]), stored[key])
            for hit in ranked
            if (key := _Key.of(hit)) in stored  # one may have been deleted meanwhile
        ]

    def _fused(self, query: SearchQuery) -> list[Candidate]:
        """Fuse two rankings, the same way whatever plugins the cluster has."""
        options: dict[str, Any] = {"size": query.depth, "filters": query.filters}
        bodies = [
            self._dialect.lexical_query(_text(query.text), **options),
            self._dialect.span_query(query.vector, k=query.depth, **options, **self._vectors),
        ]
        lexical, dense = (
            {_Key.of(hit): number(hit["_score"]) for hit in answer["hits"]["hits"]}
            for answer in self._cluster.msearch([{**body, **KEYS} for body in bodies], soon=True)
        )
        degrees = dict(list(dense.items())[: query.depth])  # k passages of every shard have come
        most = ceil(RERANKED / self._kept)
        exact = self._degrees(list(degrees)[:most], query)
        fused = fuse_found(lexical, degrees | exact, query.fusion, query.weight)
        best = sorted(fused, key=lambda key: -fused[key])[:most]
        exact |= self._degrees([key for key in best if key in degrees and key not in exact], query)
        fused = fuse_found(lexical, degrees | exact, query.fusion, query.weight)
        return self._page(query, fused)

    def _degrees(self, keys: Sequence[_Key], query: SearchQuery) -> dict[_Key, float]:
        """Return the degrees of some passages by all their spans."""
        found = self._stored(keys)
        packed = [stored.packed for stored in found.values()]
        scores = [word_scores(one.vectors, query.vector) for one in packed]
        best = best_of_each(packed, scores, query.lengths).astype(np.float64)
        return dict(zip(found, degree(best).tolist(), strict=True))

    def _page(
        self,
        query: SearchQuery,
        fused: Mapping[_Key, float],
        lexical: Mapping[_Key, float] | None = None,
    ) -> list[Candidate]:
        """Return the ranks that a query asks for, of all that was found."""
        ranked = sorted(fused, key=lambda key: -fused[key])
        page = ranked[query.ranks.start : query.ranks.stop]
        found = self._stored(page)
        return [
            Candidate(fused[key], found[key], (lexical or {}).get(key))
            for key in page
            if key in found
        ]

    def _stored(self, keys: Sequence[_Key]) -> dict[_Key, StoredPassage]:
        """Return some passages; one that has been deleted is left out."""
        found: dict[_Key, StoredPassage] = {}
        for first in range(0, len(keys), WORDS_PAGE):
            some = keys[first : first + WORDS_PAGE]
            query = {"bool": {"should": [key.clause() for key in some]}}
            body = {"query": query, "size": len(some), "_source": STORED}
            for hit in self._cluster.search(body, soon=True)["hits"]["hits"]:
                stored = stored_passage(hit)
                found[_Key(stored.passage.document, stored.passage.number)] = stored
        return found


def stored_passage(hit: Mapping[str, Any]) -> StoredPassage:
    """Return the passage of a hit that was asked for the fields `STORED`."""
    (source,) = typed(hit, _source=dict)
    if "words" not in source:
        raise IndexDamagedError(
            f"The passage {hit['_id']} of {hit['_index']} holds no word vectors, so slice-os did "
            "not put it there: delete it."
        )
    metadata = flat_metadata(stored_metadata(source))
    return StoredPassage(stored_text(source), metadata, packed_passage(source["words"]))


def stored_text(source: Mapping[str, Any]) -> Passage:
    """Return a passage without its words from the fields `TEXT`."""
    found = typed(
        {"title": "", **source}, document=str, passage=int, start=int, end=int, text=str, title=str
    )
    return Passage(*found)


def _named(hit: Mapping[str, Any]) -> float | None:
    score = named_score(hit)
    return None if score is None else number(score)


def _text(query: str) -> str:
    """Return a query that the cluster takes: no half characters, not too many clauses."""
    words = query.encode("utf-8", "replace").decode().split()
    if len(words) > MAX_TERMS:
        words = list(dict.fromkeys(words))[:MAX_TERMS]
    return " ".join(words)
