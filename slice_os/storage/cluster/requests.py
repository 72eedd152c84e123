"""One index of one cluster: the requests that reading and writing are made of."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from slice_os.errors import GoneError, RefusedError
from slice_os.storage.cluster.cluster_errors import (
    BUSY,
    RETRY_TIMEOUT,
    WRITE_RETRY_TIMEOUT,
    UnreadableError,
)
from slice_os.storage.cluster.passages import Entry
from slice_os.storage.cluster.responses import (
    Amount,
    BulkResult,
    Count,
    DocumentBucket,
    EntryHit,
    IndexDescription,
    IndexNotes,
    decoded,
)
from slice_os.storage.cluster.searches import OURS, PAGE, Searches
from slice_os.storage.filters import field_name, last_token

LONGEST_TERM = 32_766
"""Bytes of an id: longer ones are refused, even where they are only asked for."""
WORDS_PAGE = 100
"""Passages whose vectors are fetched at once: some 5 MB."""
FREE = "{}-0free"
"""The alias of an index whose notes nobody is changing; as roles allow NAME-0*."""
WRITTEN = "{}-w"
"""The alias by which an index is written to: to write to its name would make it anew, with another
mapping, once it is deleted."""
ABANDONED = 30.0
"""Seconds after which who changes them is taken for dead: it takes some tenths of one."""
LARGEST_SEGMENT = 5_000_000_000
"""index.merge.policy.max_merged_segment: larger segments are merged only when asked for."""
DONE = (200, 201, 404)
"""What _bulk says of an operation that is done; what is to be deleted may be gone."""


class Cluster(Searches):
    """Requests to one index (a generation) of a cluster; errors are `ClusterError`."""

    def entries(self, documents: Sequence[str]) -> dict[str, list[Entry]]:
        """Return what is stored of some documents, passage by passage."""
        ids = {document for document in documents if len(document.encode()) <= LONGEST_TERM}
        query = {"bool": {"filter": [{"terms": {"document": list(ids)}}]}}
        names = ["document", "passage", "content_hash", "stamp", "document_hash",
                 "document_digest", "word_count"]  # fmt: skip
        body = {"query": query, "_source": False, "docvalue_fields": names}
        entries: dict[str, list[Entry]] = {}
        for hit in self.in_order(body, EntryHit, WRITE_RETRY_TIMEOUT):
            values: Mapping[str, Any] = hit["fields"]
            document, *rest = (values.get(name, (None,))[0] for name in names)
            entries.setdefault(document, []).append(Entry(hit["_id"], *rest))
        return entries

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
                "query": {"bool": {"filter": [OURS, *filters]}},
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
            raise UnreadableError(self.url, f"it describes other indexes than {self.index}")
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
        options: dict[str, Any] = {
            "filter_path": "items.*.status,items.*.error",
            "require_alias": "true",
            "retry_timeout": retry_timeout,
        }
        path, kind = f"/{WRITTEN.format(self.index)}/_bulk", list[dict[str, BulkResult]]
        items = self.client.request("POST", path, lines, kind, "items", **options)
        results = [result for item in items for result in item.values()]
        if len(results) != count:
            raise UnreadableError(self.url, f"{len(results)} answers to {count} operations")
        for result in results:
            if "error" not in result and result["status"] not in (*DONE, *BUSY):
                raise UnreadableError(self.url, f"the status {result['status']} of an operation")
        return results

    def statistic(self, path: str) -> int:
        """Return one of the statistics of the primary shards: ``docs/count``."""
        kind = path.partition("/")[0]
        return self.ask("GET", f"_stats/{kind}", None, Count, f"_all/primaries/{path}")

    def bytes(self) -> int:
        """Return the bytes of the primary shards' segments: now, where `store` is seconds old."""
        options = {"include_segment_file_sizes": "true"}
        path = "_all/primaries/segments/file_sizes"
        kinds = self.ask("GET", "_stats/segments", None, dict[str, Any], path, **options)
        return sum(decoded(files, Count, self.url, "size_in_bytes") for files in kinds.values())

    def merge(self) -> None:
        """Have the cluster merge the segments of each shard, and do not wait for it.

        A search goes through a graph a segment; but one of more than 5 GB is too large to take part
        in what a cluster merges by itself later on.
        """
        size, segments = self.bytes(), self.statistic("segments/count")
        shards = max(int(self.describe()["settings"]["index"].get("number_of_shards", 1)), 1)
        most = 1 + size // (shards * LARGEST_SEGMENT)
        if segments > shards * most:
            self.ask("POST", "_forcemerge", wait_for_completion="false", max_num_segments=most)

    def refresh(self, retry_timeout: float = RETRY_TIMEOUT) -> None:
        """Make what was written visible to searches."""
        # A refresh waits a minute for a shard that is away, and does not say which.
        self.count(retry_timeout)
        self.ask("POST", "_refresh", retry_timeout=retry_timeout)
