"""Searches of one index of one cluster: one, several at once, and all hits of one page by page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from slice_os.errors import ClusterError, ClusterTimeoutError
from slice_os.storage.cluster.beat import repeated
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.cluster_errors import (
    RETRY_TIMEOUT,
    IncompleteError,
    UnreadableError,
    status_error,
)
from slice_os.storage.cluster.dialect import Dialect
from slice_os.storage.cluster.responses import Count, Shards, decoded, nested

_log = logging.getLogger(__name__)
T = TypeVar("T")
P = TypeVar("P")
PAGE = 1000
KEEP_ALIVE = 120
"""Seconds for which a cluster keeps the state that is read page by page, unless it is renewed: so
long it keeps what a killed run has left, and the files that were merged away since."""
OURS: dict[str, Any] = {"exists": {"field": "stamp"}}
FOREIGN: dict[str, Any] = {"bool": {"must_not": [OURS]}}
"""The query for what slice-os did not put into its index."""


class Searches:
    """Searches of an index (a generation); errors are `ClusterError`.

    Documents that somebody else has put into an index of ours (`is_ours`) are left out as soon as
    one is met that cannot be read.
    """

    def __init__(
        self, client: Client, dialect: Dialect, index: str, *, is_ours: bool = True
    ) -> None:
        self.client, self.dialect, self.index = client, dialect, index
        self.address, self.url = client.address, client.url
        self._is_ours, self._leaves_out = is_ours, False

    def ask(
        self,
        method: str,
        what: str = "",
        body: Any = None,
        kind: type[T] = Any,  # type: ignore[assignment]
        at: str = "",
        **options: Any,
    ) -> T:
        """Return the answer to a request about the index, ``/INDEX/what``: see `Client.request`."""
        path = f"/{self.index}/{what}".rstrip("/")
        return self.client.request(method, path, body, kind, at, **options)

    def search(
        self, body: dict[str, Any], kind: type[T], at: str = "hits/hits", **options: Any
    ) -> T:
        """Return the hits of _search, or what else is at a path; a partial answer is an error."""
        return self._found(body, lambda answer: decoded(answer, kind, self.url, at), **options)

    def msearch(
        self,
        bodies: Sequence[dict[str, Any]],
        kind: type[T],
        at: str = "hits/hits",
        header: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> list[T]:
        """Return the same of several searches in one request; each has the header."""
        options |= {"check": self._check_all_whole}

        def found() -> list[T]:
            asked = [line for body in bodies for line in (header or {}, self._asked(body))]
            answers = self.ask("POST", "_msearch", asked, list[Any], "responses", **options)
            if len(answers) != len(bodies):
                what = f"{len(answers)} answers to {len(bodies)} searches"
                raise UnreadableError(self.url, what)
            return [decoded(answer, kind, self.url, at) for answer in answers]

        return self._without_foreign(found)

    def _found(self, body: dict[str, Any], read: Callable[[Any], T], **options: Any) -> T:
        """Return what can be read from the answer of a search."""
        path = "/_search" if "pit" in body else f"/{self.index}/_search"
        options |= {"check": self._check_whole}
        return self._without_foreign(
            lambda: read(self.client.request("POST", path, self._asked(body), **options))
        )

    def _asked(self, body: dict[str, Any]) -> dict[str, Any]:
        if self._leaves_out:
            query = {"must": [body.get("query", {"match_all": {}})], "filter": [OURS]}
            body = {**body, "query": {"bool": query}}
        return self.dialect.adapt(body)

    def _without_foreign(self, find: Callable[[], T]) -> T:
        """Return what is found; what cannot be read may be what somebody else has put there."""
        try:
            return find()
        except UnreadableError:
            if self._leaves_out or not self._is_ours:
                raise
            count, ids = self.foreign()
            if not count:
                raise
        self._leaves_out = True
        _log.warning(
            "%s holds %s documents that slice-os did not put there (%s): they are left out; "
            "'slice-os doctor' says how to delete them.",
            self.index,
            f"{count:,}",
            ", ".join(ids),
        )
        return find()

    def foreign(self) -> tuple[int, list[str]]:
        """Return how many documents slice-os did not put there, and the _ids of some."""
        body = {"query": FOREIGN, "size": 3, "_source": False, "track_total_hits": True}
        found = self.ask("POST", "_search", body, dict[str, Any], "hits", check=self._check_whole)
        hits = decoded(found, list[dict[str, Any]], self.url, "hits")
        ids = [decoded(hit, str, self.url, "_id") for hit in hits]
        return decoded(found, Count, self.url, "total/value"), ids

    def _check_whole(self, answer: Any) -> None:
        """Raise ClusterError unless every shard has answered."""
        if nested(answer, "error"):
            status = nested(answer, "status")
            raise status_error(self.url, status if isinstance(status, int) else 0, answer)
        if nested(answer, "timed_out"):
            raise ClusterTimeoutError(
                f"{self.url} broke a search off that took too long: look at its load and try again."
            )
        shards = decoded(answer, Shards, self.url, "_shards")
        if shards.missing:
            raise IncompleteError(
                f"{shards.missing} of {shards.total} shards of {self.url} did not answer",
                hint="look at its health ('slice-os doctor') and try again.",
            )

    def _check_all_whole(self, answer: Any) -> None:
        for response in decoded(answer, list[Any], self.url, "responses"):
            self._check_whole(response)

    def pages(
        self,
        body: dict[str, Any],
        kind: type[P],
        size: int = PAGE,
        after: Sequence[Any] | None = None,
    ) -> Generator[list[P], None, None]:
        """Yield the hits of a query, or those after sort values, from one state of the index."""
        pit = {"id": self._open_pit(), "keep_alive": f"{KEEP_ALIVE}s"}
        body = {"sort": ["_shard_doc"], **body, "pit": pit}
        renewal = {"pit": pit, "size": 0, "query": {"match_none": {}}}
        try:
            # However long it takes until the next page is asked for.
            with repeated(lambda: self.search(renewal, Any, ""), KEEP_ALIVE / 4):
                yield from self._pages(body, kind, size, after, is_fixed=True)
        finally:
            self._close_pit(pit["id"])

    def in_order(
        self, body: dict[str, Any], kind: type[P], retry_timeout: float = RETRY_TIMEOUT
    ) -> Iterator[P]:
        """Yield all hits of a query by document and passage."""
        body["sort"] = [{"document": "asc"}, {"passage": "asc"}, {"content_hash": "asc"}]
        for page in self._pages(body, kind, PAGE, None, retry_timeout):
            yield from page

    def _pages(
        self,
        body: dict[str, Any],
        kind: type[P],
        size: int,
        after: Sequence[Any] | None = None,
        retry_timeout: float = RETRY_TIMEOUT,
        *,
        is_fixed: bool = False,
    ) -> Iterator[list[P]]:
        """Yield pages; of what nobody changes meanwhile, they are as many hits as were counted."""
        total: int | None = None
        count, left_out = 0, self._leaves_out

        def read(answer: Any) -> tuple[list[P], Any, int | None]:
            hits = decoded(answer, list[kind], self.url, "hits/hits")  # type: ignore[valid-type]
            plain: list[Any] = hits
            raw = answer["hits"]["hits"]
            for hit, whole in zip(plain, raw, strict=True):
                if "_source" in hit:
                    hit["_source"] = whole["_source"]  # fields that are not ours, too
            is_full, is_first = len(hits) == size, after is None
            last = decoded(raw[-1], list[Any], self.url, "sort") if is_full else None
            counted = decoded(answer, Count, self.url, "hits/total/value") if is_first else None
            return hits, last, counted

        while True:
            page = {**body, "size": size, "track_total_hits": after is None}
            if after is not None:
                page["search_after"] = after
            hits, last, counted = self._found(page, read, retry_timeout=retry_timeout)
            total = total if counted is None else counted
            if left_out != self._leaves_out:  # some of what was counted
                total = None
            count += len(hits)
            if last is None and total not in (None, count) and (after is None or is_fixed):
                raise UnreadableError(self.url, f"{total} hits are counted and {count} there")
            if hits:
                yield hits
            if last is None:
                return
            after = last

    def _open_pit(self) -> str:
        """Return a point in time: what keeps one state of the index."""
        field = self.dialect.pit_field

        def check(answer: Any) -> None:
            if "_shards" not in answer:  # an older Elasticsearch
                return
            try:
                self._check_whole(answer)
            except IncompleteError:
                self._close_pit(answer.get(field))
                raise

        path, kept = self.dialect.pit_path, f"{KEEP_ALIVE}s"
        return self.ask("POST", path, None, str, field, keep_alive=kept, check=check)

    def _close_pit(self, pit: str) -> None:
        path, body = f"/{self.dialect.pit_path}", self.dialect.closing(pit)
        with suppress(ClusterError):  # it ends by itself
            self.client.request("DELETE", path, body, retry_timeout=0)
