"""One index of one cluster: the requests that reading and writing are made of."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import regex
from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_delay,
    wait_random_exponential,
)

from slice_os.backends.opensearch.connection import (
    BUSY,
    PATIENCE,
    SEARCH_PATIENCE,
    Address,
    connect,
    patiently,
    reason_of,
)
from slice_os.backends.opensearch.documents import Entry
from slice_os.errors import ClusterError
from slice_os.query.filtering import field_name, last_token
from slice_os.query.hits import missing_shards
from slice_os.threads import Forkable

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

T = TypeVar("T")
PAGE = 1000
WORDS_PAGE = 100
"""Passages whose vectors are fetched at once: some 5 MB."""
KEEP_ALIVE = "1h"
LARGEST_SEGMENT = 5_000_000_000
"""index.merge.policy.max_merged_segment: larger segments are merged only when asked for."""
_ENTRY = (
    "document", "passage", "content_hash", "stamp", "document_hash", "document_digest",
    "word_count",
)  # fmt: skip


class IncompleteError(ClusterError):
    """Some shards are away, so that an answer is not the whole."""


class Cluster(Forkable):
    """Requests to one index (a generation); errors are `ClusterError`."""

    def __init__(self, client: OpenSearch, address: Address, index: str) -> None:
        self._client: OpenSearch | None = client
        self.address, self.index = address, index
        self.url = address.url
        self.watch_forks()

    @property
    def client(self) -> OpenSearch:
        """The client, with connections that belong to this process alone."""
        if self._client is None:
            self._client = connect(self.address)
        return self._client

    def forked(self) -> None:
        """Leave the connections to the parent: two that read from one would mix up answers."""
        self._client = None

    def ask(self, work: Callable[[], T], seconds: float = SEARCH_PATIENCE) -> T:
        """Run a request of the client, again while the cluster is busy."""
        return patiently(work, self.url, seconds)

    def search(
        self, body: dict[str, Any], seconds: float = SEARCH_PATIENCE, **params: Any
    ) -> dict[str, Any]:
        """Return the answer of _search; a partial one is an error."""
        index = None if "pit" in body else self.index
        return self._whole(
            lambda: self.client.search(body=body, index=index, params=dict(params)), seconds
        )

    def _whole(self, work: Callable[[], Any], seconds: float) -> dict[str, Any]:
        """Run a request, again while shards are away: their node may be starting."""

        def attempt() -> dict[str, Any]:
            answer = self.ask(work, seconds)
            for one in answer.get("responses", (answer,)):
                check_whole(one, self.url)
            return dict(answer)

        return Retrying(
            retry=retry_if_exception_type(IncompleteError),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            stop=stop_after_delay(seconds),
            reraise=True,
        )(attempt)

    def msearch(self, bodies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the answers of several searches in one request."""
        lines = [line for body in bodies for line in ({}, body)]
        answer = self._whole(
            lambda: self.client.msearch(body=lines, index=self.index), SEARCH_PATIENCE
        )
        return list(answer["responses"])

    def pages(
        self, body: dict[str, Any], size: int = PAGE
    ) -> Generator[list[dict[str, Any]], None, None]:
        """Yield all hits of a query, page by page, from one state of the index."""
        pit = self._whole(self._make_pit, SEARCH_PATIENCE)["pit_id"]
        try:
            after = None
            while True:
                page = {"sort": ["_shard_doc"], **body, "size": size, "track_total_hits": False}
                page["pit"] = {"id": pit, "keep_alive": KEEP_ALIVE}
                if after is not None:
                    page["search_after"] = after
                hits = self.search(page)["hits"]["hits"]
                if hits:
                    yield hits
                if len(hits) < size:
                    return
                after = hits[-1]["sort"]
        finally:
            self._drop_pit(pit)

    def _make_pit(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.create_pit(
            index=self.index, params={"keep_alive": KEEP_ALIVE}
        )
        try:
            check_whole(answer, self.url)
        except IncompleteError:
            self._drop_pit(answer["pit_id"])
            raise
        return answer

    def _drop_pit(self, pit: str) -> None:
        with suppress(ClusterError):  # it ends by itself
            self.ask(lambda: self.client.delete_pit(body={"pit_id": [pit]}), seconds=0)

    def entries(self, documents: Sequence[str]) -> dict[str, list[Entry]]:
        """Return what is stored of some documents, passage by passage."""
        found: dict[str, list[Entry]] = {}
        query = {"bool": {"filter": [{"terms": {"document": list(set(documents))}}]}}
        body = {"query": query, "_source": False, "docvalue_fields": list(_ENTRY)}
        for hit in self._in_order(body, PATIENCE):
            document, number, content, stamp, hash_, digest, words = (
                hit["fields"].get(name, (None,))[0] for name in _ENTRY
            )
            entry = Entry(hit["_id"], number, content, stamp, hash_, digest, words)
            found.setdefault(document, []).append(entry)
        return found

    def fields(self, query: dict[str, Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the given fields of all passages that a query finds, in their order."""
        for hit in self._in_order({"query": query, "_source": list(names)}):
            yield hit["_source"]

    def _in_order(
        self, body: dict[str, Any], seconds: float = SEARCH_PATIENCE
    ) -> Iterator[dict[str, Any]]:
        """Yield all hits of a query by document and passage."""
        order = [{"document": "asc"}, {"passage": "asc"}, {"content_hash": "asc"}]
        after = None
        while True:
            page = {**body, "sort": order, "size": PAGE}
            page |= {"search_after": after} if after else {}
            hits = self.search(page, seconds)["hits"]["hits"]
            yield from hits
            if len(hits) < PAGE:
                return
            after = hits[-1]["sort"]

    def words(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the field `words` of passages by _id; one that is gone is left out."""
        found = {}
        for first in range(0, len(ids), WORDS_PAGE):
            some = list(ids[first : first + WORDS_PAGE])
            body = {
                "query": {"ids": {"values": some}},
                "size": len(some),
                "_source": ["words"],
            }
            for hit in self.search(body)["hits"]["hits"]:
                found[hit["_id"]] = hit["_source"]["words"]
        return found

    def sources(self, filters: Sequence[dict[str, Any]] = ()) -> Iterator[tuple[str, str]]:
        """Yield the ids and sources of all documents, or of those that meet filters, in order."""
        for bucket in self.documents(filters):
            yield bucket["key"]["document"], bucket["key"]["source"] or ""

    def documents(self, filters: Sequence[dict[str, Any]] = ()) -> Iterator[dict[str, Any]]:
        """Yield the same as buckets: their passages are counted, their `words` summed up."""
        after: dict[str, Any] = {}
        words = {"words": {"sum": {"field": "word_count"}}}
        while True:
            sources = [
                {"document": {"terms": {"field": "document"}}},
                # Passages of format 1 have none.
                {"source": {"terms": {"field": "source", "missing_bucket": True}}},
            ]
            composite = {"size": PAGE, "sources": sources, **({"after": after} if after else {})}
            body = {
                "size": 0,
                "query": {"bool": {"filter": list(filters)}},
                "aggs": {"documents": {"composite": composite, "aggs": words}},
            }
            found = self.search(body)["aggregations"]["documents"]
            yield from found["buckets"]
            if "after_key" not in found:
                return
            after = found["after_key"]

    def field_names(self) -> Iterator[str]:
        """Yield the names of all fields of metadata, each by a search for the next."""
        after: dict[str, Any] = {}
        while True:
            composite = {
                "size": 1,
                "sources": [{"token": {"terms": {"field": "filters"}}}],
                **after,
            }
            body = {"size": 0, "aggs": {"tokens": {"composite": composite}}}
            buckets = self.search(body)["aggregations"]["tokens"]["buckets"]
            if not buckets:
                return
            token = buckets[0]["key"]["token"]
            yield field_name(token)
            after = {"after": {"token": last_token(token)}}

    def delete_documents(self, documents: Sequence[str]) -> None:
        """Delete all passages of documents."""
        body = {"query": {"terms": {"document": list(documents)}}}
        params = {"conflicts": "proceed", "refresh": "true", "request_timeout": PATIENCE}

        def attempt() -> int:
            """Return how many passages somebody else has just written."""
            answer = self.ask(
                lambda: self.client.delete_by_query(
                    index=self.index, body=body, params=dict(params)
                ),
                PATIENCE,
            )
            if answer["failures"]:
                raise ClusterError(f"{self.url} could not delete everything: {reason_of(answer)}.")
            return int(answer["version_conflicts"])

        if not documents:
            return
        try:
            Retrying(
                retry=retry_if_result(bool),
                wait=wait_random_exponential(multiplier=0.2, max=5),
                stop=stop_after_delay(PATIENCE),
            )(attempt)
        except RetryError:
            raise ClusterError(
                f"Somebody else keeps writing what is to be deleted from {self.address}: let that "
                "end, then run this again."
            ) from None

    def generations(self) -> dict[str, str]:
        """Return what the alias names now: index -> what tells it from another of its name."""
        params = {"ignore_unavailable": "true", "filter_path": "*.settings.index.uuid"}
        answer = self.ask(
            lambda: self.client.indices.get(index=self.address.name, params=params), PATIENCE
        )
        return {name: one["settings"]["index"]["uuid"] for name, one in answer.items()}

    def fuller(self) -> str | None:
        """Return the generation that holds documents where this one holds none, if there is one."""
        if not self.is_empty():
            return None
        what = {"index": f"{self.address.name}-0*", "params": {"format": "json"}}
        try:
            rows = self.ask(lambda: self.client.cat.indices(**what))
        except ClusterError:  # it may not be ours to know
            return None
        generation = regex.compile(regex.escape(self.address.name) + r"-\d{6}")
        full = (row["index"] for row in rows if int(row.get("docs.count") or 0))
        return next((index for index in full if generation.fullmatch(index)), None)

    def is_empty(self) -> bool:
        """Tell whether the index holds nothing."""
        answer = self._whole(lambda: self.client.count(index=self.index), PATIENCE)
        return int(answer["count"]) == 0

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the index's mappings and settings."""
        answer = self.ask(lambda: self.client.indices.get(index=self.index))[self.index]
        return answer["mappings"], answer["settings"]

    def put_settings(self, settings: dict[str, Any], seconds: float = PATIENCE) -> None:
        """Change settings; None brings back the default."""
        body = {"index": settings}
        self.ask(lambda: self.client.indices.put_settings(index=self.index, body=body), seconds)

    def put_mapping(self, body: dict[str, Any]) -> None:
        """Add fields to the mapping, or replace its _meta."""
        self.ask(lambda: self.client.indices.put_mapping(index=self.index, body=body), PATIENCE)

    def merge(self) -> None:
        """Have the cluster merge the segments of each shard, and do not wait for it.

        A search goes through a graph a segment; but one of more than 5 GB is too large to take part
        in what a cluster merges by itself later on.
        """
        stats = self.ask(
            lambda: self.client.indices.stats(index=self.index, metric="segments,store")
        )
        shards = max(stats["_shards"]["successful"], 1)
        first = stats["_all"]["primaries"]
        most = 1 + first["store"]["size_in_bytes"] // (shards * LARGEST_SEGMENT)
        if first["segments"]["count"] > shards * most:
            params = {"max_num_segments": most, "wait_for_completion": "false"}
            self.ask(lambda: self.client.indices.forcemerge(index=self.index, params=params))

    def refresh(self, seconds: float = SEARCH_PATIENCE) -> None:
        """Make what was written visible to searches."""
        # A refresh waits a minute for a shard that is away, and does not say which.
        self._whole(lambda: self.client.count(index=self.index), seconds)
        self.ask(lambda: self.client.indices.refresh(index=self.index), seconds)


def check_whole(answer: dict[str, Any], url: str) -> None:
    """Raise ClusterError unless every shard has answered."""
    if "error" in answer:
        if answer.get("status") in BUSY:
            raise IncompleteError(f"{url} is too busy: {reason_of(answer)}. Try again.")
        raise ClusterError(f"{url} refused a search: {reason_of(answer)}.")
    if answer.get("timed_out"):
        raise ClusterError(
            f"{url} broke a search off that took too long: look at its load and try again."
        )
    if missing := missing_shards(answer):
        raise IncompleteError(
            f"{missing} of {answer['_shards'].get('total', 0)} shards of {url} did not answer: "
            "look at its health ('slice-os doctor') and try again."
        )
