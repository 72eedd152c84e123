"""The best of the matches, per name, per document, by degree."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from slice_os.backends.base import Order
from slice_os.errors import QueryError
from slice_os.records import Match


def select(
    matches: Iterable[Match],
    *,
    top: int | None = None,
    per_document: bool = False,
    sort: Order | None = None,
) -> Iterator[Match]:
    """Yield the best of some matches; without an option, all of them as they come.

    `per_document` keeps the best match of each document and name, `top` the best so many of each
    name, name by name; `sort` orders all by their degree, highest first. With `top` alone no more
    than that is held in memory.

    Raises:
        QueryError: `top` is not above 0, or there is no such order.
    """
    if top is not None and top < 1:
        raise QueryError(f"The best {top} matches were asked for: ask for at least 1.")
    if sort not in (None, "degree"):
        raise QueryError(f"There is no order {sort!r}: choose degree.")
    if per_document:
        matches = _best_of_each_document(matches)
    if top is not None:
        matches = _best_of_each_name(matches, top)
    return iter(sorted(matches, key=_worst_last)) if sort else iter(matches)


def _worst_last(match: Match) -> float:
    return -match.degree


def _best_of_each_document(matches: Iterable[Match]) -> Iterator[Match]:
    best: dict[tuple[str, str], Match] = {}
    for match in matches:
        key = match.name, match.document
        if key not in best or best[key].degree < match.degree:
            best[key] = match
    yield from best.values()


def _best_of_each_name(matches: Iterable[Match], top: int) -> Iterator[Match]:
    best: dict[str, list[tuple[float, int, Match]]] = {}
    for order, match in enumerate(matches):
        heap = best.setdefault(match.name, [])
        # Of equal degrees the first stays; no two orders are equal, so matches are not compared.
        entry = (match.degree, -order, match)
        if len(heap) < top:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
    for heap in best.values():
        yield from (match for _, _, match in sorted(heap, reverse=True))
