"""The embedded index at one and ten million words: by bits and by every vector, side by side.

Needs `--data FOLDER` with the collections retrieval/scifact and retrieval/cisi. The larger index is
made of copies of SciFact (`benchmarks.copies`). SLICE_OS_BENCH_KEPT names a folder in which the
indexes stay for the next run.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import slice_os
from benchmarks.copies import write_copies
from benchmarks.recall import CUT, LEAST_LETTERS
from benchmarks.retrieval import SETS, ndcg
from benchmarks.timing import seconds
from slice_os.engine import encode_with_words, query_lengths
from slice_os.engine.rerank import RANKS, Ranked, dense_scores
from slice_os.host import thread_pool
from slice_os.lab.evaluate.collections import Collection, read_collection
from slice_os.spans import PackedPassage
from slice_os.storage.contract import SearchQuery
from slice_os.storage.fusion import LATE
from slice_os.storage.local import LocalBackend, candidates
from slice_os.storage.local.candidates import REFINED, fetch
from slice_os.storage.local.postings import Places, Postings
from slice_os.storage.local.scan import best_cosines, exact_cosines, grouped

TITLE = "The embedded index at ten million words"
COPIES = 9
SIZE = 10
ASKED = 40
EACH = 20
MANY = 64
BITS, VECTORS = REFINED, 1 << 40


NOTE = (
    f"The larger index is SciFact and {COPIES - 1} copies, the vectors of each turned by a "
    "rotation of its own (benchmarks/copies.py). By default the second search of a query, by every "
    "vector, finds spans that the first has had encoded, so these two do not compare."
)


def run(data: Path | None) -> list[str]:
    """Index both collections once, copy SciFact, and measure by turns."""
    if data is None:
        return []
    collections = {name: read_collection(data / "retrieval" / at) for name, at in SETS.items()}
    with ExitStack() as stack:
        kept = os.environ.get("SLICE_OS_BENCH_KEPT")
        folder = Path(kept or stack.enter_context(tempfile.TemporaryDirectory()))
        for name, collection in collections.items():
            if not (folder / name).exists():
                slice_os.index(collection.documents(), folder / name)
        large = folder / "SciFact-copies"
        if not large.exists():
            write_copies(folder / "SciFact", large, COPIES)
        scifact = list(collections["SciFact"].queries.values())
        random.Random(0).shuffle(scifact)
        rows = ["| nDCG@10, hybrid, --no-rescore | by bits | by every vector |", "|---|---:|---:|"]
        for name, collection in collections.items():
            with slice_os.open(folder / name) as index:
                values = [_ndcg(index, collection, refined) for refined in (BITS, VECTORS)]
            rows.append(f"| {name} | {values[0]:.4f} | {values[1]:.4f} |")
        for at in (folder / "SciFact", large):
            with slice_os.open(at) as index:
                rows += ["", *_measured(index, scifact)]
        rows += ["", *_one_vector(folder, collections["SciFact"], large), "", NOTE]
        return rows


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return how long `work` takes, and the time of the processor's cores for it."""
    start = time.process_time()
    return seconds(work), time.process_time() - start


@contextmanager
def _scanning(refined: int) -> Iterator[None]:
    """Scan by bits, or with VECTORS by every vector, as an index of few passages is scanned."""
    with patch.object(candidates, "REFINED", refined):
        yield


def _ndcg(index: slice_os.Index, collection: Collection, refined: int) -> float:
    ranking: dict[str, dict[str, float]] = {}
    with _scanning(refined):
        for name, text in collection.queries.items():
            best = ranking.setdefault(name, {})
            for hit in index.search(text, size=50, rescore=0, literal=True):
                best[hit.document] = max(hit.score, best.get(hit.document, 0))
    return ndcg(ranking, collection.qrels.relevance)


def _measured(index: slice_os.Index, texts: list[str]) -> list[str]:
    status = index.status()
    backend = LocalBackend.open(index.location)
    assert backend is not None
    rows = [
        f"{status.words:,} words in {status.passages:,} passages, "
        f"{status.bytes / status.words:.1f} bytes a word, text and postings included.",
        "",
        "| stage of a hybrid search, p50 | |",
        "|---|---:|",
        *(f"| {name} | {1000 * taken:.1f} ms |" for name, taken in _stages(index, backend, texts)),
        "",
        "| search, hybrid, 10 hits | p50 | processor's time | by every vector: p50 | "
        "processor's time |",
        "|---|---:|---:|---:|---:|",
    ]
    for rescore, name in ((1, "by default"), (0, "--no-rescore")):
        taken = np.zeros((ASKED, 2, 2))  # the processor's time says more where others use it too
        for text, of_text in zip(texts, taken, strict=False):
            for refined, times in zip((BITS, VECTORS), of_text, strict=True):
                with _scanning(refined):
                    times[:] = _seconds(lambda: index.search(text, rescore=rescore))
        p50 = 1000 * np.median(taken, axis=0).ravel()
        rows.append(f"| {name} | {' | '.join(f'{value:.0f} ms' for value in p50)} |")
    for rescore, name in ((1, ""), (0, ", --no-rescore")):
        one_by_one = [_seconds(partial(index.search, q, rescore=rescore)) for q in texts[:MANY]]
        single = np.sum(one_by_one, axis=0)
        many = np.array(_seconds(lambda: index.search_many(texts[:MANY], rescore=rescore)))
        each, ratio = 1000 * many / MANY, single / many
        rows.append(
            f"| one of {MANY} of `search_many`{name} | {each[0]:.0f} ms | {each[1]:.0f} ms | | |"
        )
        rows.append(f"| one by one is slower by | {ratio[0]:.1f} × | {ratio[1]:.1f} × | | |")
    return [*rows, "", *_recall(index, texts)]


def _stages(
    index: slice_os.Index, backend: LocalBackend, texts: list[str]
) -> Iterator[tuple[str, float]]:
    """Yield the median time of each stage, each alone: in a search BM25 runs beside the scan."""
    taken: dict[str, list[float]] = {}
    pool = thread_pool(os.cpu_count() or 1, "bench")
    with backend._mapped_state() as (database, segments):
        places = Places(segments)
        for text in texts[:ASKED]:
            clock = [time.perf_counter()]
            ((vector, words),) = encode_with_words(index.encoder, [text])
            clock.append(time.perf_counter())
            lengths = query_lengths(text, 20, False)
            for exact in (True, False):
                scan = partial(best_cosines, queries=vector[None], lengths=[lengths], exact=exact)
                cosines = list(pool.map(scan, grouped(segments.values(), 1, exact=exact)))
                clock.append(time.perf_counter())
            best = np.concatenate(cosines, axis=1)[0]
            clock.append(time.perf_counter())
            Postings(database, places, 1).scores(text, (), 1000)
            clock.append(time.perf_counter())
            refs = places.refs(np.argsort(-best)[:REFINED].tolist())
            clock.append(time.perf_counter())
            exact_cosines([(segments[number], place) for number, place in refs], vector, lengths)
            clock.append(time.perf_counter())
            query = SearchQuery(text, vector, lengths, words=words, late=LATE)
            stored = fetch(database, segments, refs[: RANKS["hybrid"]])
            dense_scores(query, [Ranked(0, passage, None, vector, lengths) for passage in stored])
            clock.append(time.perf_counter())
            for name, part in zip(_STAGES, np.diff(clock).tolist(), strict=True):
                taken.setdefault(name, []).append(part)
    pool.shutdown()
    for name in filter(None, _STAGES):
        yield name, statistics.median(taken[name])


_STAGES = (
    "encoding the query",
    "(a scan of every vector, on all cores)",
    "the scan by bits, on all cores",
    "",
    "BM25, on one core",
    "",
    f"scoring the best {REFINED} by their vectors",
    f"reading {RANKS['hybrid']} candidates and scoring them word by word",
)


def _recall(index: slice_os.Index, texts: list[str]) -> list[str]:
    """Return how many of the ten hits that a scan of every vector finds are found by bits."""
    rng = random.Random(1)
    sets = {"whole": texts[:ASKED]}
    for count in CUT:
        cuts = []
        for text in texts:
            words = text.rstrip(".").split()
            start = rng.randrange(max(1, len(words) - count + 1))
            cuts.append(" ".join(words[start : start + count]))
        fitting = [c for c in cuts if len(c) > LEAST_LETTERS and index.encoder.knows(c)]
        sets[f"{count} word{'s' * (count > 1)} of them"] = fitting[:EACH]
    rows = [
        f"| recall@10 of the scan of every vector | {' | '.join(sets)} |",
        "|---|" + "---:|" * len(sets),
    ]
    for mode in ("dense", "hybrid"):
        figures = []
        for queries in sets.values():
            shared = []
            for text in queries:
                keys = []
                for refined in (BITS, VECTORS):
                    with _scanning(refined):
                        hits = index.search(text, mode=mode, rescore=0, literal=True)
                    keys.append({(hit.document, hit.passage) for hit in hits})
                shared.append(len(keys[0] & keys[1]) / SIZE)
            figures.append(f"{statistics.fmean(shared):.3f}")
        rows.append(f"| {mode} | {' | '.join(figures)} |")
    return rows


def _one_vector(folder: Path, collection: Collection, large: Path) -> list[str]:
    """Compare with one vector a passage, the mean of its words, in an HNSW graph of usearch."""
    from usearch.index import Index

    rows = [
        "| one vector a passage, usearch | vectors | bytes a word | p50 | nDCG@10 |",
        "|---|---:|---:|---:|---:|",
    ]
    for at in (folder / "SciFact", large):
        backend = LocalBackend.open(str(at))
        assert backend is not None
        names, vectors, words = [], [], 0
        for stored in backend.passages():
            names.append(stored.passage.document)
            vectors.append(_mean(stored.packed))
            words += len(stored.packed)
        graph = Index(ndim=len(vectors[0]), metric="cos", dtype="f32")
        graph.add(np.arange(len(vectors)), np.stack(vectors))
        encoder = slice_os.load_encoder()
        queries = list(collection.queries.items())
        asked = [vector for vector, _ in encode_with_words(encoder, [text for _, text in queries])]
        times: list[float] = []
        ranking: dict[str, dict[str, float]] = {}
        for (name, _), vector in zip(queries, asked, strict=True):
            start = time.perf_counter()
            nearest = graph.search(vector, 50)
            times.append(time.perf_counter() - start)
            best = ranking.setdefault(name, {})
            for key, distance in zip(
                nearest.keys.tolist(), nearest.distances.tolist(), strict=True
            ):
                best[names[key]] = max(1 - distance, best.get(names[key], -1))
        quality = f"{ndcg(ranking, collection.qrels.relevance):.4f}" if at != large else ""
        rows.append(
            f"| {words:,} words | {len(vectors):,} | {graph.memory_usage / words:.1f} | "
            f"{1000 * statistics.median(times):.1f} ms | {quality} |"
        )
    return rows


def _mean(packed: PackedPassage) -> Any:
    return packed.vectors.sum(axis=0)
