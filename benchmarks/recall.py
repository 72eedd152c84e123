"""What a search of a node finds of the exact ranking's ten best, of whole queries and of cuts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import slice_os
from benchmarks.exact import best_cosines, said
from benchmarks.retrieval import ndcg
from slice_os.engine import encode_with_words, query_lengths
from slice_os.query import lexical_query
from slice_os.spans import degree
from slice_os.storage.cluster.backend import ClusterBackend
from slice_os.storage.fusion import LATE, get_fusion

SIZE = 10
CUT = (1, 2, 3, 5)
EACH = 100
LEAST_LETTERS = 4
Ranking = dict[tuple[str, int], float]


def recall_at_10(
    index: slice_os.Index,
    backend: ClusterBackend,
    encoder: Any,
    queries: dict[str, str],
    judged: dict[str, dict[str, int]],
) -> list[str]:
    """Return recall@10 and nDCG@10 against the exact ranking of all passages."""
    cut = {count: _cut(list(queries.values()), count) for count in CUT}
    texts = [*queries.values(), *(text for some in cut.values() for text in some)]
    exact = _exact_rankings(backend, encoder, texts)
    rows = [
        "| all queries | recall@10 | nDCG@10 | exact ranking | of it |",
        "|---|---:|---:|---:|---:|",
    ]
    short: dict[str, list[float]] = {}
    lost: dict[str, list[float]] = {}
    for mode in ("dense", "hybrid"):
        recall, less, found, best = [], [], {}, {}
        for number, (text, ranking) in enumerate(zip(texts, exact[mode], strict=True)):
            size = 100 if number < len(queries) else SIZE
            hits = index.search(text, mode=mode, size=size, rescore=0)
            keys = [(hit.document, hit.passage) for hit in hits]
            top = sorted(ranking, key=lambda key: -ranking[key])
            recall.append(len({*keys[:SIZE]} & {*top[:SIZE]}) / SIZE)
            less.append(_mean(ranking, top[:SIZE]) - _mean(ranking, keys[:SIZE]))
            if number < len(queries):
                query = list(queries)[number]
                found[query] = _by_document({k: h.score for k, h in zip(keys, hits, strict=True)})
                best[query] = _by_document({key: ranking[key] for key in top[:100]})
        ours, theirs = ndcg(found, judged), ndcg(best, judged)
        rows.append(
            f"| {mode} | {np.mean(recall[: len(queries)]):.3f} | {ours:.4f} | {theirs:.4f} | "
            f"{100 * ours / theirs:.1f} % |"
        )
        short[mode], lost[mode] = (
            [float(part.mean()) for part in np.split(np.array(one[len(queries) :]), len(CUT))]
            for one in (recall, less)
        )
    return [
        *rows,
        "",
        f"| recall@10 of words cut out of {EACH} queries | "
        + " | ".join(f"{count} word{'s' * (count > 1)}" for count in CUT)
        + " |",
        "|---|" + "---:|" * len(CUT),
        *(f"| {m} | {' | '.join(f'{value:.3f}' for value in v)} |" for m, v in short.items()),
        *(
            f"| {m}: by how much less the ten score | {' | '.join(f'{v:.4f}' for v in values)} |"
            for m, values in lost.items()
        ),
    ]


def _mean(ranking: Ranking, keys: list[tuple[str, int]]) -> float:
    return float(np.mean([ranking[key] for key in keys]))


def _cut(queries: list[str], count: int) -> list[str]:
    """Return so many words of each of the first queries, from anywhere in them."""
    rng = random.Random(count)
    found = []
    for query in queries:
        words = query.rstrip(".").split()
        start = rng.randrange(max(1, len(words) - count + 1))
        text = " ".join(words[start : start + count])
        if len(text) > LEAST_LETTERS:  # "the" is no phrase
            found.append(text)
    return found[:EACH]


def _by_document(scores: Ranking) -> dict[str, float]:
    best: dict[str, float] = {}
    for (document, _), score in scores.items():
        best[document] = max(best.get(document, -1.0), score)
    return best


def _exact_rankings(
    backend: ClusterBackend, encoder: Any, texts: list[str]
) -> dict[str, list[Ranking]]:
    """Return every passage's score for every query, from all its words and Lucene's BM25."""
    encoded = list(encode_with_words(encoder, texts))
    vectors, words = np.stack([vector for vector, _ in encoded]), [words for _, words in encoded]
    lengths = [query_lengths(text, backend.meta.max_words, False) for text in texts]
    keys, scores = [], []
    for stored in backend.passages():
        keys.append((stored.passage.document, stored.passage.number))
        inside = stored.packed.vectors
        spans = best_cosines(inside, stored.packed.span_norms, vectors, lengths)
        scores.append((1 - LATE) * degree(spans) + LATE * degree(said([inside], words))[0])
    table = np.stack(scores)
    dense = [dict(zip(keys, table[:, k].tolist(), strict=True)) for k in range(len(texts))]
    fusion, weight = get_fusion("saturation", None)
    hybrid = []
    for text, ranking in zip(texts, dense, strict=True):
        body = lexical_query(text, size=10_000, source=["document", "passage"])
        hits = backend.cluster.search(body, list[dict[str, Any]])
        lexical = {
            (hit["_source"]["document"], hit["_source"]["passage"]): hit["_score"] for hit in hits
        }
        hybrid.append(fusion.fuse(ranking, lexical, weight))
    return {"dense": dense, "hybrid": hybrid}
