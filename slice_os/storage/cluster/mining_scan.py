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
from slice_os.storage.cluster.query import filter_clauses, radius
from slice_os.storage.cluster.query.mining import MARGINS
from slice_os.storage.cluster.requests import WORDS_PAGE, Cluster
from slice_os.storage.cluster.response_checks import number, reading, reads_answers, whole
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.contract import MiningQuery, StoredPassage
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

Pages = Generator[list[dict[str, Any]], None, None]


@reads_answers
def usual_tolerance(cluster: Cluster, layout: Layout) -> float:
    """Return a tolerance that the stored spans of 99 % of an index's passages keep."""
    # Passages of format 1, without the field, all keep that of the index.
    each = {"field": "tolerance", "percents": [1], "missing": layout.tolerance}
    body = {"size": 0, "aggs": {"kept": {"percentiles": each}}}
    found = cluster.search(body)["aggregations"]["kept"]["values"]["1.0"]
    # Down to a step, since it may lie between two.
    if found is None:
        return layout.tolerance
    return max(math.floor(number(found) * 100 + 0.1) / 100, 0.01)


@dataclass(frozen=True)
class Scan:
    """What is asked of a cluster: the passages where a span may reach a phrase's cosine."""

    cluster: Cluster
    layout: Layout
    query: MiningQuery
    on_progress: Callable[[float], object]

    @reads_answers
    def graph_pays(self) -> bool:
        """Tell whether the graph is quicker than reading every word: a sample of passages says it.

        A widened search names more passages the lower the threshold is, up to all of them.
        """
        at_random = {"random_score": {"seed": 7, "field": "_seq_no"}, "boost_mode": "replace"}
        query = {"function_score": {**self._everything(), **at_random}}
        wanted = {"size": WORDS_PAGE, "_source": STORED, "track_total_hits": True}
        hits = self.cluster.search({"query": query, **wanted})["hits"]
        sample = [stored_passage(hit) for hit in hits["hits"]]
        widened = np.array([cosine(least) for least in self._radii()], np.float32)
        named = [len(phrases) for _, phrases in self._reaching(sample, widened)]
        passages, count = whole(hits["total"]["value"]), len(self.query.phrases.vectors)
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
            some = range(first, min(first + PHRASES, count))
            answers = self._lists(some)
            with reading(self.cluster.url):
                full = any(_is_full(answer, WINDOW) for answer in answers)
                found = [hit["_id"] for answer in answers for hit in answer["hits"]["hits"]]
                named |= dict.fromkeys(found)
            if full:
                yield from self.every_word(begun=first / count / 2)
                return
            self.on_progress(some.stop / count / 2)
        yield from self._matching(self._read(list(named)), len(named), begun=0.5)

    def every_word(self, begun: float = 0.0) -> Iterator[tuple[StoredPassage, list[int]]]:
        """Yield the same from all words of the cluster.

        From one state of the index, whatever is written meanwhile. `begun` is the share of the
        work that was done before.
        """
        passages = self.cluster.total(self._everything()["query"])
        pages = self.cluster.pages({**self._everything(), "_source": STORED}, WORDS_PAGE)
        yield from self._matching(pages, passages, begun)

    @reads_answers
    def _lists(self, phrases: Sequence[int], at: int = 0) -> list[dict[str, Any]]:
        """Return for each phrase what a search names, by a longer list if a short one is full."""
        windows = self.cluster.dialect.windows
        answers = self.cluster.msearch([self._radial(k, windows[at]) for k in phrases])
        if at + 1 < len(windows):
            full = [n for n, answer in enumerate(answers) if _is_full(answer, windows[at])]
            longer = self._lists([phrases[n] for n in full], at + 1) if full else []
            for n, answer in zip(full, longer, strict=True):
                answers[n] = answer
        return answers

    @reads_answers
    def _read(self, ids: Sequence[str]) -> Pages:
        for first in range(0, len(ids), WORDS_PAGE):
            some = {"query": {"ids": {"values": ids[first : first + WORDS_PAGE]}}}
            answer = self.cluster.search({**some, "size": WORDS_PAGE, "_source": STORED})
            yield answer["hits"]["hits"]

    def _everything(self) -> dict[str, Any]:
        return {"query": {"bool": {"filter": filter_clauses(self.query.filters)}}}

    @property
    def _margin(self) -> float:
        return MARGINS[self.layout.vector_type] + SLACK

    def _radii(self) -> list[float]:
        """Return the least stored degree that each phrase's search has to reach."""
        degrees = [degree(c) for c in self.query.phrases.cosines.tolist()]
        return [radius(one, self.tolerance, self._margin) for one in degrees]

    @cached_property
    def tolerance(self) -> float:
        """The tolerance that all but a few passages keep; those few are always read."""
        return usual_tolerance(self.cluster, self.layout)

    def _radial(self, k: int, window: int) -> dict[str, Any]:
        body = self.cluster.dialect.mining_query(
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
                with reading(self.cluster.url):
                    some = [stored_passage(hit) for hit in page]
                yield from self._reaching(some, self.query.phrases.cosines)
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
        wanted = replace(self.query.phrases, cosines=cosines)
        found = scan_passages(
            bounds, lambda first, last: PassageBlock.of(packed[first:last]), wanted
        )
        for passage, phrases in found:
            yield passages[passage], phrases


def _is_full(answer: dict[str, Any], window: int) -> bool:
    """Tell whether a search may have found more than it could name."""
    return whole(answer["hits"]["total"]["value"]) >= window
