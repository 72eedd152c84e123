"""Mining in a cluster: which passages may hold a match, by the graph or by reading every word."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from slice_os.spans import PassageBlock, cosine, degree, scan_passages
from slice_os.storage.cluster.candidates import STORED, stored_passage
from slice_os.storage.cluster.queries import mining_query
from slice_os.storage.cluster.requests import WORDS_PAGE, Cluster
from slice_os.storage.cluster.responses import Hits, IdHit, Score, StoredHit
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.cluster.vectors import MARGINS, radius
from slice_os.storage.contract import MiningQuery, StoredPassage
from slice_os.storage.filters import filter_clauses
from slice_os.types import Float32

PHRASES = 16
"""Radial searches in one request."""
WINDOW = 10_000
SLACK = 0.02
"""By how much lower degrees the graph is asked for than have to be named: what lies within a narrow
radius is not connected in it. Of 61 matches of 200 phrases at 0.9 it found 56 without, 60 with 0.01
and all with 0.02."""
READ, COMPARED, SEARCHED, NAMED = 0.5, 0.002, 20.0, 0.12
"""Milliseconds on the node of docs/benchmarks.md: to read a passage's words, to compare them with a
phrase, to search the graph for a phrase, and to have a passage named for it."""

Pages = Generator[list[StoredHit], None, None]


def usual_tolerance(cluster: Cluster, layout: Layout) -> float:
    """Return a tolerance that the stored spans of 99 % of an index's passages keep."""
    percentiles = {"percentiles": {"field": "tolerance", "percents": [1]}}
    body, path = {"size": 0, "aggs": {"kept": percentiles}}, "aggregations/kept/values"
    kept = cluster.search(body, dict[str, Score | None], path).get("1.0")
    if kept is None:  # there are no passages
        return layout.tolerance
    # Down to a step, since it may lie between two.
    return max(math.floor(kept * 100 + 0.1) / 100, 0.01)


@dataclass(frozen=True)
class Scan:
    """What is asked of a cluster: the passages where a span may reach a phrase's cosine."""

    cluster: Cluster
    layout: Layout
    query: MiningQuery
    on_progress: Callable[[float], object]

    def graph_pays(self) -> bool:
        """Tell whether the graph is quicker than reading every word: a sample of passages says it.

        A widened search names more passages the lower the threshold is, up to all of them.
        """
        at_random = {"random_score": {"seed": 7, "field": "_seq_no"}, "boost_mode": "replace"}
        query = {"function_score": {"query": self._all, **at_random}}
        options = {"size": WORDS_PAGE, "_source": STORED, "track_total_hits": True}
        hits = self.cluster.search({"query": query, **options}, Hits[StoredHit], "hits")
        sample = [stored_passage(hit) for hit in hits.hits]
        degrees = [degree(c) for c in self.query.phrases.cosines.tolist()]
        radii = [radius(each, self.tolerance, self._margin) for each in degrees]
        widened = np.array([cosine(least) for least in radii], np.float32)
        named = [len(phrases) for _, phrases in self._reaching(sample, widened)]
        passages, count = hits.total.value, len(self.query.phrases.vectors)
        each = READ + COMPARED * count
        by_graph = each * len(named) + NAMED * sum(named)
        times = passages / max(len(sample), 1)
        return bool(SEARCHED * count + by_graph * times < each * passages)

    def by_graph(self) -> Iterator[tuple[StoredPassage, list[int]]]:
        """Yield the passages that a widened search of the stored spans names, and the phrases.

        Where one phrase names more than can be listed, every word is read instead.
        """
        named: dict[str, None] = {}  # in the order they were found
        count = len(self.query.phrases.vectors)
        for first in range(0, count, PHRASES):
            phrases = range(first, min(first + PHRASES, count))
            lists = self._lists(phrases)
            named |= dict.fromkeys(hit["_id"] for hits in lists for hit in hits.hits)
            if any(hits.total.value >= WINDOW for hits in lists):
                yield from self.every_word(begun=first / count / 2)
                return
            self.on_progress(phrases.stop / count / 2)
        yield from self._matching(self._read(list(named)), len(named), begun=0.5)

    def every_word(self, begun: float = 0.0) -> Iterator[tuple[StoredPassage, list[int]]]:
        """Yield the same from all words of the cluster.

        From one state of the index, whatever is written meanwhile. `begun` is the share of the
        work that was done before.
        """
        passages = self.cluster.total(self._all)
        pages = self.cluster.pages({"query": self._all, "_source": STORED}, StoredHit, WORDS_PAGE)
        yield from self._matching(pages, passages, begun)

    def _lists(self, phrases: Sequence[int], at: int = 0) -> list[Hits[IdHit]]:
        """Return for each phrase what a search names, by a longer list if a short one is full."""
        windows = self.cluster.dialect.windows
        bodies = [self._radial(k, windows[at]) for k in phrases]
        lists = self.cluster.msearch(bodies, Hits[IdHit], "hits")
        if at + 1 < len(windows):
            full = [n for n, hits in enumerate(lists) if hits.total.value >= windows[at]]
            longer = self._lists([phrases[n] for n in full], at + 1) if full else []
            for n, hits in zip(full, longer, strict=True):
                lists[n] = hits
        return lists

    def _read(self, ids: Sequence[str]) -> Pages:
        for first in range(0, len(ids), WORDS_PAGE):
            query = {"ids": {"values": ids[first : first + WORDS_PAGE]}}
            body = {"query": query, "size": WORDS_PAGE, "_source": STORED}
            yield self.cluster.search(body, list[StoredHit])

    @property
    def _all(self) -> dict[str, Any]:
        """The query for all passages that meet the filters."""
        return {"bool": {"filter": filter_clauses(self.query.filters)}}

    @property
    def _margin(self) -> float:
        return MARGINS[self.layout.vector_type] + SLACK

    @cached_property
    def tolerance(self) -> float:
        """The tolerance that all but a few passages keep; those few are always read."""
        return usual_tolerance(self.cluster, self.layout)

    def _radial(self, k: int, window: int) -> dict[str, Any]:
        body = mining_query(
            self.query.phrases.vectors[k],
            degree(float(self.query.phrases.cosines[k])),
            tolerance=self.tolerance,
            size=window,
            nearest=window,
            filters=self.query.filters,
            margin=self._margin,
            vector_type=self.layout.vector_type,
            dimensions=self.layout.dimensions,
            source=(),
            dialect=self.cluster.dialect.bodies,
        )
        del body["sort"]
        return {**body, "track_total_hits": True}

    def _matching(
        self, pages: Pages, passages: int, begun: float = 0.0
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        done = 0
        # The cluster makes the next page while this one is worked on.
        with closing(pages), ThreadPoolExecutor(1, "slice-os-ahead") as ahead:
            coming = ahead.submit(next, pages, None)
            while (page := coming.result()) is not None:
                coming = ahead.submit(next, pages, None)
                stored = [stored_passage(hit) for hit in page]
                yield from self._reaching(stored, self.query.phrases.cosines)
                done += len(page)
                # More may have been written since they were counted.
                self.on_progress(begun + (1 - begun) * min(done / max(passages, 1), 1.0))

    def _reaching(
        self, passages: Sequence[StoredPassage], cosines: Float32
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        """Yield those passages where a span may reach a phrase's cosine, and the phrases."""
        if not passages:
            return
        packed = [stored.packed for stored in passages]
        bounds = np.cumsum([0, *map(len, packed)])
        batch = replace(self.query.phrases, cosines=cosines)

        def read(first: int, last: int) -> PassageBlock:
            return PassageBlock.of(packed[first:last])

        for at, phrases in scan_passages(bounds, read, batch):
            yield passages[at], phrases
