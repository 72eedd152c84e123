"""Late interaction beside spans: ColBERT's MaxSim by PyLate and fast-plaid, and a hybrid search.

Needs `--data FOLDER` with retrieval/scifact and retrieval/cisi, and all-MiniLM-L6-v2. No checkpoint
that was trained for late interaction is in a package registry, so its token vectors are used as
they are, and with their first 128 principal axes: less than what trained ones rank by.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import slice_os
from benchmarks.weights import minilm
from slice_os.lab.evaluate.collections import Collection, Run, read_collection
from slice_os.lab.evaluate.metrics import Metrics

TITLE = "Late interaction"
SETS = {"SciFact": "scifact", "CISI": "cisi"}
MEASURE, DEPTH = "nDCG@10", 10
LONGEST = 512
"""Tokens of a document that are encoded, all that the model takes."""
Queries = dict[str, str]
AXES = 128
"""ColBERT's usual dimensions."""
DOCUMENTS = int(os.environ.get("BENCHMARK_DOCUMENTS", "0"))
"""Documents of a collection that are taken, those that are relevant first; 0: all."""
QUERIES = int(os.environ.get("BENCHMARK_QUERIES", "0")) or None
"""Queries that are asked; 0: all."""


def run(data: Path | None) -> list[str]:
    """Return bytes a word, the waiting time of a query and nDCG@10 on both sets."""
    if data is None:
        return []
    rows = [f"| set | system | {MEASURE} | ms a query | bytes a word | words/s |"]
    rows.append("|---|---|---:|---:|---:|---:|")
    for name, folder in SETS.items():
        figures = _measured(read_collection(data / "retrieval" / folder))
        rows += [f"| {name} | {system} | {' | '.join(row)} |" for system, row in figures.items()]
    return [
        *rows,
        "",
        f"{DOCUMENTS or 'All'} documents of each set, those that are relevant first, and "
        f"{QUERIES or 'all'} of its queries, asked one by one: the median, with the query's "
        "encoding. Words a second: encoding and indexing.",
    ]


def _measured(collection: Collection) -> dict[str, list[str]]:
    """Return the figures of each system on a collection."""
    queries = dict(islice(collection.queries.items(), QUERIES))
    relevance = {name: collection.qrels.relevance[name] for name in queries}
    documents = _taken(collection, {name for of in relevance.values() for name in of})
    taken = {document.id for document in documents}
    metrics = Metrics(
        [MEASURE],
        {q: {d: grade for d, grade in of.items() if d in taken} for q, of in relevance.items()},
    )
    words = sum(len(f"{document.title} {document.text}".split()) for document in documents)
    figures: dict[str, list[str]] = {}

    def note(system: str, run: Run, times: list[float], size: int, seconds: float) -> None:
        score = metrics.measure(run).means[MEASURE]
        figures[system] = [
            f"{score:.3f}", f"{statistics.median(times) * 1e3:.0f}", f"{size / words:.0f}",
            f"{words / seconds:,.0f}",
        ]  # fmt: skip

    for measure in (_spans, _late):
        for system, measured in measure(queries, documents):
            note(system, *measured)
            print(f"  {system}: {' | '.join(figures[system])}", file=sys.stderr, flush=True)
    return figures


def _taken(collection: Collection, relevant: set[str]) -> list[slice_os.Document]:
    """Return the documents of a collection, or so many: all that are relevant, others at random."""
    documents = [*collection.documents()]
    if not DOCUMENTS:
        return documents
    random.Random(0).shuffle(documents)
    return sorted(documents, key=lambda document: document.id not in relevant)[:DOCUMENTS]


def _asked(queries: Queries, ask: Callable[[str], dict[str, float]]) -> tuple[Run, list[float]]:
    """Return the rankings of queries, and how long each took."""
    run: Run = {}
    times: list[float] = []
    for warm in [*queries.values()][:5]:
        ask(warm)
    for name, text in queries.items():
        began = time.perf_counter()
        run[name] = ask(text)
        times.append(time.perf_counter() - began)
    return run, times


def _spans(
    queries: Queries, documents: list[slice_os.Document]
) -> Iterator[tuple[str, tuple[Run, list[float], int, float]]]:
    """Yield what slice-os measures."""
    with tempfile.TemporaryDirectory() as folder, slice_os.open(f"{folder}/a.slice") as index:
        began = time.perf_counter()
        index.add(documents)
        seconds = time.perf_counter() - began
        size = index.status().bytes
        for name, options in (
            ("slice-os hybrid", {}),
            ("slice-os hybrid, not rescored", {"rescore": 0}),
            ("slice-os dense", {"mode": "dense"}),
        ):

            def ask(text: str, options: dict[str, Any] = options) -> dict[str, float]:
                hits = index.search(text, size=DEPTH, group=True, literal=True, **options)
                ranking: dict[str, float] = {}
                for rank, hit in enumerate(hits):
                    ranking.setdefault(hit.document, -rank)
                return ranking

            yield name, (*_asked(queries, ask), size, seconds)


def _late(
    queries: Queries, documents: list[slice_os.Document]
) -> Iterator[tuple[str, tuple[Run, list[float], int, float]]]:
    """Yield what PyLate measures."""
    import torch
    from pylate import indexes, models, retrieve

    model = models.ColBERT(
        minilm(), device="cpu", embedding_size=384, query_prefix="", document_prefix="",
        document_length=LONGEST, query_length=64, do_query_expansion=False,
    )  # fmt: skip
    model[1].linear.weight.data = torch.eye(384)
    texts = [f"{document.title} {document.text}".strip() for document in documents]
    began = time.perf_counter()
    vectors = model.encode(texts, batch_size=32, is_query=False, show_progress_bar=False)
    encoding = time.perf_counter() - began
    stacked = np.concatenate(vectors).astype(np.float32)
    begins = np.cumsum([0, *map(len, vectors[:-1])])
    axes = np.linalg.eigh(stacked[::9].T @ stacked[::9])[1][:, ::-1][:, :AXES]

    def encoded(text: str) -> Any:
        return np.asarray(model.encode([text], is_query=True, show_progress_bar=False)[0])

    def exactly(text: str) -> dict[str, float]:
        scores = np.maximum.reduceat(encoded(text) @ stacked.T, begins, axis=1).sum(axis=0)
        return {documents[n].id: float(scores[n]) for n in np.argsort(-scores)[:DEPTH].tolist()}

    run, times = _asked(queries, exactly)
    name = "MaxSim of all-MiniLM-L6-v2"
    yield f"{name}, 384 dimensions, all in 16 bits", (run, times, 2 * stacked.size, encoding)

    def projected(vectors: Any) -> Any:
        return (vectors @ axes) / np.linalg.norm(vectors @ axes, axis=1, keepdims=True)

    with tempfile.TemporaryDirectory() as folder:
        index = indexes.PLAID(
            folder, "late", override=True, nbits=4, show_progress=False, device="cpu"
        )
        began = time.perf_counter()
        index.add_documents(
            [document.id for document in documents],
            documents_embeddings=[*map(projected, vectors)],
        )
        seconds = encoding + time.perf_counter() - began
        retriever = retrieve.ColBERT(index=index)

        def ask(text: str) -> dict[str, float]:
            (hits,) = retriever.retrieve([projected(encoded(text))], k=DEPTH)
            return {hit["id"]: float(hit["score"]) for hit in hits}

        run, times = _asked(queries, ask)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        yield (
            f"{name} by PyLate and fast-plaid, {AXES} principal axes, 4 bits",
            (run, times, size, seconds),
        )
