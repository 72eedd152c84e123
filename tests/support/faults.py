"""What the tests of faults share: a corpus, runs that can be killed, and a line that can be cut."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

import slice_os
from slice_os.text import split

PASSAGE_WORDS = 30
LINES = [
    "I want to cancel my subscription because it costs too much.",
    "The parcel never came, and nobody answers the telephone.",
    "Either party may end this agreement with thirty days of notice.",
    "Alice was beginning to get very tired of sitting by her sister.",
    "Please move my seat to the window, and send me the boarding pass.",
]


def documents(version: int = 0, count: int = 30, large: int = 60) -> list[slice_os.Document]:
    """Make documents, one of them of `large` lines; each version changes, adds and drops some."""
    made = []
    for number in range(version % 5, count):
        revision = version if number % 3 == version % 3 else 0
        rng = random.Random(number * 1000 + revision)
        size = large if number == 10 else 1 + number % 6
        lines = [f"{rng.choice(LINES)} ({number}.{revision}.{k})" for k in range(size)]
        made.append(slice_os.Document(f"d{number}", "\n".join(lines), metadata={"v": revision}))
    return made


def write(path: Path, corpus: Iterable[slice_os.Document]) -> Path:
    """Write documents as JSON lines, for the command line."""
    rows = [{"id": one.id, "text": one.text, **one.metadata} for one in corpus]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


class Run:
    """`slice-os index` in a process of its own."""

    def __init__(self, corpus: Path, location: str, *options: str) -> None:
        command = [
            str(Path(sys.executable).with_name("slice-os")),
            "index",
            str(corpus),
            "--id-global",
        ]
        self.process = subprocess.Popen(
            [*command, "--index", location, "--json", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, patience: float = 240) -> tuple[int, dict[str, Any], str]:
        """Wait; return the exit code, the report and what stderr says."""
        out, err = self.process.communicate(timeout=patience)
        return self.process.returncode, json.loads(out) if out else {}, err


def rerun(corpus: Path, location: str, *options: str) -> dict[str, Any]:
    """Run undisturbed; it must succeed."""
    code, report, err = Run(corpus, location, *options).end()
    assert code == 0, err
    return report


def is_clear(message: str) -> bool:
    """Whether an error is one sentence, and not that of another library."""
    text = message.removeprefix("Error: ").strip()
    return bool(text) and "\n" not in text and "Traceback" not in text and "bug" not in text


def held(client: OpenSearch, name: str) -> dict[str, dict[str, Any]]:
    """Return all that an index holds, by _id."""
    client.indices.refresh(index=name)
    body = {
        "size": 2000,
        "_source": {"excludes": ["spans"]},
        "sort": ["document", "passage"],
    }
    answer = client.search(index=name, body=body)
    shards = answer["_shards"]
    assert shards["successful"] == shards["total"]
    assert answer["hits"]["total"]["value"] < 2000
    return {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]}


def passages(found: Iterable[dict[str, Any]]) -> list[tuple[str, int, str]]:
    """Return the passages of `held`, sorted: one that is there twice is there twice."""
    return sorted((one["document"], one["passage"], one["text"]) for one in found)


def expected(corpus: Iterable[slice_os.Document]) -> list[tuple[str, int, str]]:
    """Return the passages that a corpus is split into."""
    cut = [passage for one in corpus for passage in split(one, PASSAGE_WORDS)]
    return sorted((one.document, one.number, one.text) for one in cut)


def same(client: OpenSearch, name: str, documents: list[slice_os.Document]) -> None:
    """Every passage is there exactly once, and as a clean index of the same corpus has it."""
    found, clean = held(client, name), held(client, f"{name}-clean")
    assert passages(found.values()) == expected(documents)
    assert passages(clean.values()) == expected(documents)
    wanted = {(one["document"], one["passage"]): one for one in clean.values()}
    for one in found.values():
        assert one == wanted[one["document"], one["passage"]]


def settings(client: OpenSearch, name: str) -> tuple[str | None, int, object]:
    """Return the refresh interval, the replicas, and what _meta notes while a run is loading."""
    (said,) = client.indices.get(index=name).values()
    index = said["settings"]["index"]
    loading = said["mappings"]["_meta"]["slice_os"].get("loading")
    return index.get("refresh_interval"), int(index["number_of_replicas"]), loading


def written(client: OpenSearch, name: str) -> tuple[int, int]:
    """Return how many passages have been indexed and deleted in an index since it was made."""
    stats = client.indices.stats(index=name, metric="indexing")["_all"]["primaries"]["indexing"]
    return stats["index_total"], stats["delete_total"]


def wait_for(client: OpenSearch, name: str, passages: int, patience: float = 90) -> bool:
    """Wait until an index has taken so many passages: as soon as they are sent, shown or not."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with suppress(OpenSearchException, KeyError):
            if written(client, name)[0] >= passages:
                return True
        time.sleep(0.02)
    return False


def make_like(client: OpenSearch, index: str, like: str) -> None:
    """Make an empty index with the mapping of another, as somebody would by hand."""
    said = client.indices.get(index=like)[like]
    analysis = said["settings"]["index"]["analysis"]
    settings = {"index": {"number_of_replicas": 0, "analysis": analysis}}
    if "knn" in said["settings"]["index"]:
        settings["index"]["knn"] = True
    body = {"settings": settings, "mappings": said["mappings"]}
    client.indices.create(index=index, body=body)


def green(client: OpenSearch, name: str) -> None:
    """Wait until every copy of an index is there."""
    wait = {"wait_for_status": "green", "timeout": "30s", "request_timeout": 40, "ignore": 408}
    for _ in range(3):
        # What failed five times, as its node was away, is not tried again by itself.
        client.cluster.reroute(params={"retry_failed": "true"})
        if not (health := client.cluster.health(index=name, params=wait))["timed_out"]:
            return
    raise AssertionError(health)


@contextmanager
def settings_of_the_cluster(client: OpenSearch, **values: object) -> Iterator[Callable[[], None]]:
    """Change settings of the cluster; the function that is given changes them back."""

    def put(values: dict[str, Any]) -> None:
        client.cluster.put_settings(body={"transient": values})

    try:
        put(values)
        yield lambda: put(dict.fromkeys(values))
    finally:
        put(dict.fromkeys(values))


@contextmanager
def full_disk(client: OpenSearch, name: str) -> Iterator[None]:
    """Let an index be blocked as a cluster does whose disk has passed its flood stage."""

    def block(value: bool | None) -> None:
        body = {"index.blocks.read_only_allow_delete": value}
        client.indices.put_settings(index=f"{name}-0*", body=body)

    block(True)
    try:
        yield
    finally:
        block(None)


@contextmanager
def emptied(client: OpenSearch, *names: str) -> Iterator[None]:
    """Remove the indexes of a test, whatever became of it."""
    try:
        yield
    finally:
        for name in names:
            client.indices.delete(index=f"{name}-0*", ignore=[404])


class Line:
    """A TCP line to a node that can be cut, or that answers 503 as a busy gateway does.

    Of what comes back some meets a trouble: it is cut off, dropped (and nothing follows), delayed
    or truncated; `met` counts how much.
    """

    def __init__(self, url: str) -> None:
        host, _, port = url.rpartition("/")[2].partition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.busy = False
        self.cuts = self.refusals = 0
        self.met: Counter[str] = Counter()
        self._troubles: dict[str, tuple[Iterator[int], int]] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where the line begins."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Reset every connection, whatever is under way on it."""
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                    self.cuts += 1

    def trouble(self, what: str, every: int) -> None:
        """Let one answer in `every` meet a trouble: not the first of all, but soon."""
        first = 2 * len(self._troubles) + random.choice((1, 2))
        self._troubles[what] = count(every - first), every

    def disturb(self, data: bytes) -> bytes:
        """Return what of an answer goes on, or end the line."""
        for what, (came, every) in self._troubles.items():
            if next(came) % every:
                continue
            self.met[what] += 1
            if what == "truncate" and len(data) > 1:
                raise _Ended(data[: random.randrange(1, len(data))])
            if what != "delay":
                time.sleep(20 * (what == "drop"))
                raise _Ended(b"")
            time.sleep(random.random())
        return data

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if self.busy:
                self._refuse(client)
                return
            with socket.create_connection(self._target) as server, self._registered(client, server):
                how = self.disturb
                back = threading.Thread(target=_pump, args=(server, client, how), daemon=True)
                back.start()
                _pump(client, server)
                back.join()

    @contextmanager
    def _registered(self, *ends: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.update(ends)
        try:
            yield
        finally:
            with self._lock:
                self._open.difference_update(ends)

    def _refuse(self, client: socket.socket) -> None:
        """Read a request to its end, else the answer would be lost in a reset; answer 503."""
        stream = client.makefile("rb")
        length = 0
        while (line := stream.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            length = int(value) if name.lower() == "content-length" else length
        stream.read(length)
        self.refusals += 1
        head = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 4\r\n"
        client.sendall(head + b"Content-Type: text/plain\r\n\r\nbusy")


class _Ended(Exception):
    """A line ends after these bytes."""


def _pump(
    source: socket.socket,
    target: socket.socket,
    disturb: Callable[[bytes], bytes] = lambda data: data,
) -> None:
    with suppress(OSError):
        try:
            while data := source.recv(1 << 16):
                target.sendall(disturb(data))
        except _Ended as end:
            target.sendall(end.args[0])
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
