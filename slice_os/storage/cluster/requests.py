"""One index of one cluster: the requests that reading and writing are made of."""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import regex
from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_delay,
    wait_random_exponential,
)

from slice_os.errors import BusyError, ClusterError, ClusterTimeoutError, GoneError, RefusedError
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.cluster_errors import (
    BUSY,
    RETRY_TIMEOUT,
    WRITE_RETRY_TIMEOUT,
    counting,
    reason_of,
    state_of,
)
from slice_os.storage.cluster.dialect import Dialect
from slice_os.storage.cluster.filters import field_name, last_token
from slice_os.storage.cluster.hits import missing_shards
from slice_os.storage.cluster.passages import Entry
from slice_os.storage.cluster.response_checks import reads_answers, typed, whole

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
_ENTRY = {
    "document": str, "passage": int, "content_hash": str, "stamp": str, "document_hash": str,
    "document_digest": str, "word_count": int,
}  # fmt: skip


class IncompleteError(BusyError):
    """Some shards are away, so that an answer is not the whole."""


@reads_answers
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
        retry_timeout: float = RETRY_TIMEOUT,
        **params: Any,
    ) -> Any:
        """Return the answer to a request about the index: ``/INDEX/what``."""
        path = f"/{self.index}/{what}".rstrip("/")
        return self.client.request(method, path, body, retry_timeout=retry_timeout, **params)

    def search(
        self, body: dict[str, Any], retry_timeout: float = RETRY_TIMEOUT, **params: Any
    ) -> dict[str, Any]:
        """Return the answer of _search; a partial one is an error."""
        where = "/_search" if "pit" in body else f"/{self.index}/_search"
        return self._whole("POST", where, self.dialect.adapt(body), retry_timeout, **params)

    def _whole(
        self,
        method: str,
        path: str,
        body: Any = None,
        retry_timeout: float = RETRY_TIMEOUT,
        **params: Any,
    ) -> dict[str, Any]:
        """Make a request, again while shards are away: their node may be starting."""

        def attempt() -> dict[str, Any]:
            answer = self.client.request(method, path, body, retry_timeout=retry_timeout, **params)
            for one in answer.get("responses", (answer,)):
                check_whole(one, self.url)
                typed(one["_shards"], total=int, successful=int, failed=int)
            return dict(answer)

        return Retrying(
            retry=retry_if_exception_type(IncompleteError),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            stop=stop_after_delay(retry_timeout),
            before_sleep=counting(self.client.effort),
            reraise=True,
        )(attempt)

    def msearch(
        self,
        bodies: Sequence[dict[str, Any]],
        header: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> list[dict[str, Any]]:
        """Return the answers of several searches in one request; each has the header."""
        lines = [line for body in bodies for line in (header or {}, self.dialect.adapt(body))]
        answer = self._whole("POST", f"/{self.index}/_msearch", lines, **params)
        return [one for _, one in zip(bodies, answer["responses"], strict=True)]

    def pages(
        self, body: dict[str, Any], size: int = PAGE, after: Sequence[Any] | None = None
    ) -> Generator[list[dict[str, Any]], None, None]:
        """Yield all hits of a query, or those after some sort values, page by page.

        They are from one state of the index.
        """
        pit = self._open_pit()
        body = {"sort": ["_shard_doc"], **body, "pit": {"id": pit, "keep_alive": KEEP_ALIVE}}
        try:
            yield from self._pages(body, size, after, is_fixed=True)
        finally:
            self._close_pit(pit)

    def _pages(
        self,
        body: dict[str, Any],
        size: int,
        after: Sequence[Any] | None,
        retry_timeout: float = RETRY_TIMEOUT,
        *,
        is_fixed: bool = False,
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield pages; of what nobody changes meanwhile, they are as many hits as were counted."""
        total: int | None = None
        found = 0
        while True:
            counted = after is None
            page = {**body, "size": size, "track_total_hits": counted}
            answer = self.search(
                page if counted else {**page, "search_after": after}, retry_timeout
            )
            hits = answer["hits"]["hits"]
            found += len(hits)
            if counted:
                total = whole(answer["hits"]["total"]["value"])
            if len(hits) < size and total not in (None, found) and (counted or is_fixed):
                raise ValueError(f"{total} hits are counted and {found} there")
            if hits:
                yield hits
            if len(hits) < size:
                return
            after = typed(hits[-1], sort=list)[0]

    def _open_pit(self) -> str:
        """Return a point in time: what keeps one state of the index."""
        dialect = self.dialect

        def attempt() -> str:
            path = f"/{self.index}/{dialect.pit_path}"
            answer = self.client.request("POST", path, keep_alive=KEEP_ALIVE)
            pit: str = typed(answer, **{dialect.pit_field: str})[0]
            try:
                check_whole(answer, self.url)
            except IncompleteError:
                self._close_pit(pit)
                raise
            return pit

        return Retrying(
            retry=retry_if_exception_type(IncompleteError),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            stop=stop_after_delay(RETRY_TIMEOUT),
            before_sleep=counting(self.client.effort),
            reraise=True,
        )(attempt)

    def _close_pit(self, pit: str) -> None:
        path, body = f"/{self.dialect.pit_path}", self.dialect.closing(pit)
        with suppress(ClusterError):  # it ends by itself
            self.client.request("DELETE", path, body, retry_timeout=0)

    def entries(self, documents: Sequence[str]) -> dict[str, list[Entry]]:
        """Return what is stored of some documents, passage by passage."""
        found: dict[str, list[Entry]] = {}
        documents = [one for one in documents if len(one.encode()) <= LONGEST_TERM]
        query = {"bool": {"filter": [{"terms": {"document": list(set(documents))}}]}}
        body = {"query": query, "_source": False, "docvalue_fields": list(_ENTRY)}
        for hit in self._in_order(body, WRITE_RETRY_TIMEOUT):
            typed(hit, _id=str, fields=dict)
            values = [hit["fields"].get(name, (None,))[0] for name in _ENTRY]
            for value, (name, kind) in zip(values, _ENTRY.items(), strict=True):
                if value is not None:  # what somebody else has put there lacks some
                    typed({name: value}, **{name: kind})
            found.setdefault(values[0], []).append(Entry(hit["_id"], *values[1:]))
        return found

    def fields(self, query: dict[str, Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the given fields of all passages that a query finds, in their order."""
        for hit in self._in_order({"query": query, "_source": list(names)}):
            yield typed(hit, _source=dict)[0]

    def _in_order(
        self, body: dict[str, Any], retry_timeout: float = RETRY_TIMEOUT
    ) -> Iterator[dict[str, Any]]:
        """Yield all hits of a query by document and passage."""
        body["sort"] = [{"document": "asc"}, {"passage": "asc"}, {"content_hash": "asc"}]
        for page in self._pages(body, PAGE, None, retry_timeout):
            yield from page

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
                (found[hit["_id"]],) = typed(hit["_source"], words=str)
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
            buckets = self.search(body)["aggregations"]["documents"]["buckets"]
            for bucket in buckets:
                typed(
                    {**bucket["key"], "source": bucket["key"]["source"] or ""},
                    document=str,
                    source=str,
                )
            yield from buckets
            if not buckets:
                return
            after = buckets[-1]["key"]

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

    def generations(self, **options: Any) -> dict[str, str]:
        """Return what the alias names now: index -> what tells it from another of its name.

        `options` are those of `Client.request`.
        """
        answer = self.client.request(
            "GET",
            f"/{self.address.name}",
            ignore_unavailable="true",
            filter_path="*.settings.index.uuid",
            **{"retry_timeout": WRITE_RETRY_TIMEOUT, **options},
        )
        settings = {name: one["settings"]["index"] for name, one in answer.items()}
        return {name: typed(one, uuid=str)[0] for name, one in settings.items()}

    def fuller(self) -> str | None:
        """Return the generation that holds documents where this one holds none, if there is one."""
        if not self.is_empty(RETRY_TIMEOUT):
            return None
        try:
            rows = self.client.request(
                "GET", f"/_cat/indices/{self.address.name}-0*", format="json"
            )
        except ClusterError:  # it may not be ours to know
            return None
        generation = regex.compile(regex.escape(self.address.name) + r"-\d{6}")
        full = (row["index"] for row in rows if int(row.get("docs.count") or 0))
        return next((index for index in full if generation.fullmatch(index)), None)

    def count(self, retry_timeout: float = RETRY_TIMEOUT) -> int:
        """Return how many passages the index holds."""
        path = f"/{self.index}/_count"
        return whole(self._whole("GET", path, retry_timeout=retry_timeout)["count"])

    def total(self, query: Mapping[str, Any]) -> int:
        """Return how many passages a query finds."""
        body = {"query": query, "size": 0, "track_total_hits": True}
        return whole(self.search(body)["hits"]["total"]["value"])

    def is_empty(self, retry_timeout: float = WRITE_RETRY_TIMEOUT) -> bool:
        """Tell whether the index holds nothing."""
        return self.count(retry_timeout) == 0

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the index's mappings and settings."""
        mappings, settings = typed(self.ask("GET")[self.index], mappings=dict, settings=dict)
        typed(settings, index=dict)
        return mappings, settings

    def notes(self) -> dict[str, Any]:
        """Return the mapping's _meta: what slice-os notes of the index is its `slice_os`.

        See `sound_notes`.
        """
        return sound_notes(self.describe()[0])

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others from changing the notes of the index in a block.

        The alias `FREE` is there while nobody changes them: taking an alias away that has to be
        there is what a cluster does for one of several that ask. One that was killed has left it
        away; who has waited `ABANDONED` seconds for it puts it back.
        """
        token = FREE.format(self.address.name)
        waited = time.monotonic()
        while not self._alias("remove", token, must_exist=True):
            if time.monotonic() - waited > ABANDONED:
                self._alias("add", token)
                waited = time.monotonic()
            time.sleep(random.uniform(0.05, 0.3))
        try:
            yield
        finally:
            self._alias("add", token)

    def _alias(self, action: str, alias: str, **options: bool) -> bool:
        """Add an alias to the index, or remove it; False if it has to be there and is not."""
        actions = [{action: {"index": self.index, "alias": alias, **options}}]
        try:
            self.client.request(
                "POST", "/_aliases", {"actions": actions}, retry_timeout=WRITE_RETRY_TIMEOUT
            )
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
        meta = self.notes()
        ours = {**meta["slice_os"], **values}
        ours = {name: value for name, value in ours.items() if value is not None or name == "store"}
        if ours != meta["slice_os"]:
            self.put_mapping({"_meta": {**meta, "slice_os": ours}})

    def put_settings(
        self, settings: dict[str, Any], retry_timeout: float = WRITE_RETRY_TIMEOUT
    ) -> None:
        """Change settings; None brings back the default."""
        self.ask("PUT", "_settings", {"index": settings}, retry_timeout)

    def put_mapping(self, body: dict[str, Any]) -> None:
        """Add fields to the mapping, or replace its _meta."""
        self.ask("PUT", "_mapping", body, WRITE_RETRY_TIMEOUT)

    def bulk(
        self, lines: Any, count: int, retry_timeout: float, **options: Any
    ) -> list[dict[str, Any]]:
        """Send so many operations; return what became of each: its `status`, maybe an `error`."""
        path = f"/{self.index}/_bulk"
        answer = self.client.request(
            "POST",
            path,
            lines,
            retry_timeout=retry_timeout,
            filter_path="items.*.status,items.*.error",
            **options,
        )
        results = [result for item in answer["items"] for result in item.values()]
        if len(results) != count:
            raise ValueError(f"{count} operations and {len(results)} items")
        for result in results:
            (status,) = typed(result, status=int)
            if "error" not in result and status not in (*DONE, *BUSY):
                raise ValueError(f"the status {status} of an operation")
        return results

    def merge(self) -> None:
        """Have the cluster merge the segments of each shard, and do not wait for it.

        A search goes through a graph a segment; but one of more than 5 GB is too large to take part
        in what a cluster merges by itself later on.
        """
        stats = self.ask("GET", "_stats/segments,store")
        shards = max(whole(stats["_shards"]["successful"]), 1)
        first = stats["_all"]["primaries"]
        most = 1 + whole(first["store"]["size_in_bytes"]) // (shards * LARGEST_SEGMENT)
        if whole(first["segments"]["count"]) > shards * most:
            self.ask("POST", "_forcemerge", wait_for_completion="false", max_num_segments=most)

    def refresh(self, retry_timeout: float = RETRY_TIMEOUT) -> None:
        """Make what was written visible to searches."""
        # A refresh waits a minute for a shard that is away, and does not say which.
        self.count(retry_timeout)
        self.ask("POST", "_refresh", retry_timeout=retry_timeout)


def check_whole(answer: dict[str, Any], url: str) -> None:
    """Raise ClusterError unless every shard has answered."""
    if "error" in answer:
        if answer.get("status") in BUSY:
            raise IncompleteError(f"{url} is too busy: {reason_of(answer)}. Try again.")
        said = state_of(url, answer) or f"{url} refused a search: {reason_of(answer)}."
        error = GoneError if answer.get("status") == 404 else RefusedError
        raise error(said, answer.get("status"))
    if answer.get("timed_out"):
        raise ClusterTimeoutError(
            f"{url} broke a search off that took too long: look at its load and try again."
        )
    if missing := missing_shards(answer):
        raise IncompleteError(
            f"{missing} of {answer['_shards'].get('total', 0)} shards of {url} did not answer: "
            "look at its health ('slice-os doctor') and try again."
        )


def sound_notes(mappings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the _meta of mappings. Who changes it writes it back whole, so it has to be sound.

    Raises:
        LookupError: it is not.
        TypeError: it is not.
    """
    meta: dict[str, Any] = mappings["_meta"]
    (ours,) = typed(meta, slice_os=dict)
    typed(ours, format=int, encoder=dict, max_words=int, passage_words=int, vector=dict)
    return meta
