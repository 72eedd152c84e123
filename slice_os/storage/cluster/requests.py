"""One index of one cluster: the requests that reading and writing are made of."""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, TypeVar

from slice_os.errors import ClusterError, ClusterTimeoutError, GoneError, RefusedError
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.cluster_errors import (
    BUSY,
    RETRY_TIMEOUT,
    WRITE_RETRY_TIMEOUT,
    IncompleteError,
    foreign_error,
    status_error,
)
from slice_os.storage.cluster.dialect import Dialect
from slice_os.storage.cluster.filters import field_name, last_token
from slice_os.storage.cluster.passages import Entry
from slice_os.storage.cluster.responses import (
    Amount,
    BulkResult,
    Count,
    DocumentBucket,
    EntryFields,
    EntryHit,
    IndexDescription,
    IndexNotes,
    Shards,
    decoded,
    nested,
)

T = TypeVar("T")
P = TypeVar("P")
PAGE = 1000
LONGEST_TERM = 32_766
"""Bytes of an id: longer ones are refused, even where they are only asked for."""
WORDS_PAGE = 100
"""Passages whose vectors are fetched at once: some 5 MB."""
KEEP_ALIVE = "1h"
FREE = "{}-0free"
"""The alias of an index whose notes nobody is changing; as roles allow NAME-0*."""
ABANDONED = 30.0
"""Seconds after which who changes them is taken for dead: it takes some tenths of one."""
LARGEST_SEGMENT = 5_000_000_000
"""index.merge.policy.max_merged_segment: larger segments are merged only when asked for."""
DONE = (200, 201, 404)
"""What _bulk says of an operation that is done; what is to be deleted may be gone."""


class Cluster:
    """Requests to one index (a generation) of a cluster; errors are `ClusterError`."""

    def __init__(self, client: Client, dialect: Dialect, index: str) -> None:
        self.client, self.dialect, self.index = client, dialect, index
        self.address, self.url = client.address, client.url

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
        path = "/_search" if "pit" in body else f"/{self.index}/_search"
        body = self.dialect.adapt(body)
        return self.client.request("POST", path, body, kind, at, check=self._check_whole, **options)

    def msearch(
        self,
        bodies: Sequence[dict[str, Any]],
        kind: type[T],
        at: str = "hits/hits",
        header: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> list[T]:
        """Return the same of several searches in one request; each has the header."""
        lines = [line for body in bodies for line in (header or {}, self.dialect.adapt(body))]
        options |= {"check": self._check_all_whole}
        responses = self.ask("POST", "_msearch", lines, list[Any], "responses", **options)
        if len(responses) != len(bodies):
            raise foreign_error(self.url, f"{len(responses)} answers to {len(bodies)} searches")
        return [decoded(response, kind, self.url, at) for response in responses]

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
        pit = self._open_pit()
        body = {"sort": ["_shard_doc"], **body, "pit": {"id": pit, "keep_alive": KEEP_ALIVE}}
        try:
            yield from self._pages(body, kind, size, after, is_fixed=True)
        finally:
            self._close_pit(pit)

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
        count = 0
        while True:
            page = {**body, "size": size, "track_total_hits": after is None}
            if after is not None:
                page["search_after"] = after
            answer = self.search(page, dict[str, Any], "hits", retry_timeout=retry_timeout)
            hits = decoded(answer, list[kind], self.url, "hits")  # type: ignore[valid-type]
            plain: list[Any] = hits
            for hit, raw in zip(plain, answer["hits"], strict=True):
                if "_source" in hit:
                    hit["_source"] = raw["_source"]  # fields that are not ours, too
            if after is None:
                total = decoded(answer, Count, self.url, "total/value")
            count += len(hits)
            if len(hits) < size and total not in (None, count) and (after is None or is_fixed):
                raise foreign_error(self.url, f"{total} hits are counted and {count} there")
            if hits:
                yield hits
            if len(hits) < size:
                return
            after = decoded(answer["hits"][-1], list[Any], self.url, "sort")

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

        path = self.dialect.pit_path
        return self.ask("POST", path, None, str, field, keep_alive=KEEP_ALIVE, check=check)

    def _close_pit(self, pit: str) -> None:
        path, body = f"/{self.dialect.pit_path}", self.dialect.closing(pit)
        with suppress(ClusterError):  # it ends by itself
            self.client.request("DELETE", path, body, retry_timeout=0)

    def entries(self, documents: Sequence[str]) -> dict[str, list[Entry]]:
        """Return what is stored of some documents, passage by passage."""
        ids = {document for document in documents if len(document.encode()) <= LONGEST_TERM}
        query = {"bool": {"filter": [{"terms": {"document": list(ids)}}]}}
        names = list(EntryFields.__annotations__)
        body = {"query": query, "_source": False, "docvalue_fields": names}
        entries: dict[str, list[Entry]] = {}
        for hit in self.in_order(body, EntryHit, WRITE_RETRY_TIMEOUT):
            values: Mapping[str, Any] = hit["fields"]
            document, *rest = (values.get(name, (None,))[0] for name in names)
            entries.setdefault(document, []).append(Entry(hit["_id"], *rest))
        return entries

    def in_order(
        self, body: dict[str, Any], kind: type[P], retry_timeout: float = RETRY_TIMEOUT
    ) -> Iterator[P]:
        """Yield all hits of a query by document and passage."""
        body["sort"] = [{"document": "asc"}, {"passage": "asc"}, {"content_hash": "asc"}]
        for page in self._pages(body, kind, PAGE, None, retry_timeout):
            yield from page

    def words(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the field `words` of passages by _id; one that is gone is left out."""
        words: dict[str, str] = {}
        for first in range(0, len(ids), WORDS_PAGE):
            page = list(ids[first : first + WORDS_PAGE])
            query = {"ids": {"values": page}}
            body = {"query": query, "size": len(page), "_source": ["words"]}
            for hit in self.search(body, list[dict[str, Any]]):
                id_ = decoded(hit, str, self.url, "_id")
                words[id_] = decoded(hit, str, self.url, "_source/words")
        return words

    def sources(self, filters: Sequence[dict[str, Any]] = ()) -> Iterator[tuple[str, str]]:
        """Yield the ids and sources of all documents, or of those that meet filters, in order."""
        for bucket in self.documents(filters):
            yield bucket.key.document, bucket.key.source or ""

    def documents(self, filters: Sequence[dict[str, Any]] = ()) -> Iterator[DocumentBucket]:
        """Yield the same with the numbers of their passages and words."""
        after: dict[str, Any] = {}
        words = {"words": {"sum": {"field": "word_count"}}}
        sources = [
            {"document": {"terms": {"field": "document"}}},
            {"source": {"terms": {"field": "source", "missing_bucket": True}}},
        ]
        while True:
            composite = {"size": PAGE, "sources": sources, **after}
            body = {
                "size": 0,
                "query": {"bool": {"filter": list(filters)}},
                "aggs": {"documents": {"composite": composite, "aggs": words}},
            }
            path = "aggregations/documents/buckets"
            buckets = self.search(body, list[DocumentBucket], path)
            yield from buckets
            if not buckets:
                return
            key = buckets[-1].key
            after = {"after": {"document": key.document, "source": key.source}}

    def field_names(self) -> Iterator[str]:
        """Yield the names of all fields of metadata, each by a search for the next."""
        after: dict[str, Any] = {}
        while True:
            sources = [{"token": {"terms": {"field": "filters"}}}]
            composite = {"size": 1, "sources": sources, **after}
            body = {"size": 0, "aggs": {"tokens": {"composite": composite}}}
            buckets = self.search(body, list[dict[str, Any]], "aggregations/tokens/buckets")
            if not buckets:
                return
            token = decoded(buckets[0], str, self.url, "key/token")
            yield field_name(token)
            after = {"after": {"token": last_token(token)}}

    def generations(self, **options: Any) -> dict[str, str]:
        """Return what the alias names now: index -> what tells it from another of its name.

        `options` are those of `Client.request`.
        """
        answer = self.client.request(
            "GET",
            f"/{self.address.name}",
            ignore_unavailable="true",
            kind=dict[str, dict[str, Any]],
            filter_path="*.settings.index.uuid",
            **{"retry_timeout": WRITE_RETRY_TIMEOUT, **options},
        )
        path = "settings/index/uuid"
        return {name: decoded(index, str, self.url, path) for name, index in answer.items()}

    def count(self, retry_timeout: float = RETRY_TIMEOUT) -> int:
        """Return how many passages the index holds."""
        options = {"check": self._check_whole, "retry_timeout": retry_timeout}
        return self.ask("GET", "_count", None, Count, "count", **options)

    def aggregate(self, aggregations: dict[str, Any], *paths: str) -> list[int]:
        """Return numbers of aggregations of all passages, by their paths: ``words/value``."""
        body = {"size": 0, "aggs": aggregations}
        answer = self.search(body, dict[str, Any], "aggregations")
        return [int(decoded(answer, Amount, self.url, path)) for path in paths]

    def total(self, query: Mapping[str, Any]) -> int:
        """Return how many passages a query finds."""
        body = {"query": query, "size": 0, "track_total_hits": True}
        return self.search(body, Count, "hits/total/value")

    def describe(self) -> IndexDescription:
        """Return the index's aliases, mappings and settings."""
        answer = self.ask("GET", kind=dict[str, IndexDescription])
        if self.index not in answer:
            raise foreign_error(self.url, f"it describes other indexes than {self.index}")
        return answer[self.index]

    def meta(self) -> dict[str, Any]:
        """Return the mapping's _meta, which who changes it writes back whole."""
        meta = decoded(self.describe()["mappings"].get("_meta"), dict[str, Any], self.url)
        decoded(meta.get("slice_os"), IndexNotes, self.url)
        return meta

    def notes(self) -> dict[str, Any]:
        """Return what slice-os notes of the index."""
        notes: dict[str, Any] = self.meta()["slice_os"]
        return notes

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others from changing the notes of the index in a block.

        The alias `FREE` is there while nobody changes them; of several that remove an alias that
        must exist, one succeeds. Who was killed has left it away: after `ABANDONED` seconds
        whoever waits puts it back.
        """
        began = time.monotonic()
        free = FREE.format(self.address.name)
        while not self.change_alias("remove", free):
            if time.monotonic() - began > ABANDONED:
                self.change_alias("add", free)
                began = time.monotonic()
            time.sleep(random.uniform(0.05, 0.3))
        try:
            yield
        finally:
            self.change_alias("add", free)

    def change_alias(self, action: Literal["add", "remove"], alias: str) -> bool:
        """Add an alias to the index, or remove it; False if it is not there to be removed."""
        options = {"must_exist": True} if action == "remove" else {}
        change = {action: {"index": self.index, "alias": alias, **options}}
        body, timeout = {"actions": [change]}, WRITE_RETRY_TIMEOUT
        try:
            self.client.request("POST", "/_aliases", body, retry_timeout=timeout)
        except (GoneError, RefusedError) as exc:
            if action == "remove" and exc.kind != "index_not_found_exception":
                return False
            raise
        return True

    def note(self, **values: Any) -> None:
        """Change what slice-os notes of the index: all changes of it are made here.

        A cluster replaces _meta whole, whoever has changed it meanwhile: so to be called within
        `alone`, with what was read there. A value of None is noted no longer.
        """
        meta = self.meta()
        before = meta["slice_os"]
        ours = {**before, **values}
        ours = {name: value for name, value in ours.items() if value is not None or name == "store"}
        if ours != before:
            self.put_mapping({"_meta": {**meta, "slice_os": ours}})

    def put_settings(
        self, settings: dict[str, Any], retry_timeout: float = WRITE_RETRY_TIMEOUT
    ) -> None:
        """Change settings; None brings back the default."""
        self.ask("PUT", "_settings", {"index": settings}, retry_timeout=retry_timeout)

    def put_mapping(self, body: dict[str, Any]) -> None:
        """Add fields to the mapping, or replace its _meta."""
        self.ask("PUT", "_mapping", body, retry_timeout=WRITE_RETRY_TIMEOUT)

    def bulk(self, lines: Any, count: int, retry_timeout: float = 0) -> list[BulkResult]:
        """Send so many operations; return what became of each: its `status`, maybe an `error`."""
        options = {"filter_path": "items.*.status,items.*.error", "retry_timeout": retry_timeout}
        items = self.ask("POST", "_bulk", lines, list[dict[str, BulkResult]], "items", **options)
        results = [result for item in items for result in item.values()]
        if len(results) != count:
            raise foreign_error(self.url, f"{len(results)} answers to {count} operations")
        for result in results:
            if "error" not in result and result["status"] not in (*DONE, *BUSY):
                raise foreign_error(self.url, f"the status {result['status']} of an operation")
        return results

    def statistic(self, path: str) -> int:
        """Return one of the statistics of the primary shards: ``store/size_in_bytes``."""
        kind = path.partition("/")[0]
        return self.ask("GET", f"_stats/{kind}", None, Count, f"_all/primaries/{path}")

    def merge(self) -> None:
        """Have the cluster merge the segments of each shard, and do not wait for it.

        A search goes through a graph a segment; but one of more than 5 GB is too large to take part
        in what a cluster merges by itself later on.
        """
        size, segments = self.statistic("store/size_in_bytes"), self.statistic("segments/count")
        shards = max(int(self.describe()["settings"]["index"].get("number_of_shards", 1)), 1)
        most = 1 + size // (shards * LARGEST_SEGMENT)
        if segments > shards * most:
            self.ask("POST", "_forcemerge", wait_for_completion="false", max_num_segments=most)

    def refresh(self, retry_timeout: float = RETRY_TIMEOUT) -> None:
        """Make what was written visible to searches."""
        # A refresh waits a minute for a shard that is away, and does not say which.
        self.count(retry_timeout)
        self.ask("POST", "_refresh", retry_timeout=retry_timeout)
