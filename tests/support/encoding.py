"""The packaged encoder, loaded once a process; where backends are tested, it reads a text once.

They index the same few conversations hundreds of times. What the graph says of a text depends
neither on its company nor on the thread, which tests/quick/encoders shows; so it need not say it
again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slice_os import load_encoder
from slice_os.encoders.onnx import Graph, Int64, OnnxEncoder
from slice_os.types import Float32

OF_BACKENDS = (
    "tests/contract/",
    "tests/cluster/",
    "tests/quick/local/",
)
MOST = 200 << 20
"""Bytes that are remembered in a process; beyond them all is forgotten."""


class Remembering:
    """In the place of `Graph.run`: what the packaged graph gave for these ids before, if it did."""

    def __init__(self) -> None:
        self.packaged: Graph | None = None
        self._known: dict[bytes, Float32] = {}
        self._bytes = 0

    def run(self, graph: Graph, ids: Int64, mask: Int64, types: Int64 | None = None) -> Float32:
        if graph is not self.packaged or len(ids) > 1 or types is not None:
            return RUN(graph, ids, mask, types)
        known = self._known.get(ids.tobytes())
        if known is not None:
            return known
        if self._bytes > MOST:
            self._known.clear()
            self._bytes = 0
        vectors = RUN(graph, ids, mask)
        vectors.flags.writeable = False
        self._known[ids.tobytes()] = vectors
        self._bytes += vectors.nbytes
        return vectors


RUN = Graph.run
REMEMBERING = Remembering()


@pytest.fixture(scope="session", autouse=True)
def _loaded_once() -> Iterator[None]:
    """Keep the packaged encoder: whoever loads it meanwhile shares its graph."""
    with load_encoder() as encoder:
        assert isinstance(encoder, OnnxEncoder)
        REMEMBERING.packaged = encoder._graph
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before fixtures of any scope, which index, too."""
    remembering = item.nodeid.startswith(OF_BACKENDS)
    run = (lambda *given: REMEMBERING.run(*given)) if remembering else RUN
    Graph.run = run  # type: ignore[method-assign,assignment]
