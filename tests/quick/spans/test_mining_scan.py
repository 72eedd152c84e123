"""Which passages reach a threshold, against the cosine of every span by itself."""

from dataclasses import replace

import numpy as np
import pytest

from slice_os import spans
from slice_os.encoders.phrase_head import quantized
from slice_os.spans import mining_scan as reach
from slice_os.types import Passage, Words


def best(vectors, query, lengths):
    """Return the best span's cosine of one passage, each span summed by itself."""
    window = range(min(lengths.start, len(vectors)), lengths.stop)
    return max(
        (total := vectors[i : i + length].sum(axis=0)) @ query / np.linalg.norm(total)
        for length in window
        for i in range(len(vectors) - length + 1)
    )


@pytest.mark.parametrize(("block", "phrases"), [(1, 256), (40, 2), (4096, 256)])
def test_every_passage_that_reaches_is_found_and_no_other(block, phrases, monkeypatch):
    monkeypatch.setattr(reach, "BLOCK_WORDS", block)
    monkeypatch.setattr(reach, "BATCH_PHRASES", phrases)
    rng = np.random.default_rng(3)
    sizes = [1, 30, 2, 5, 44, 1, 3, 60, 7, 1]
    bounds = np.cumsum([0, *sizes])
    passages = [rng.standard_normal((size, 12)).astype(np.float32) for size in sizes]
    words = np.concatenate(passages)
    norms = np.concatenate([spans.span_norms(one) for one in passages], axis=1)
    inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
    queries = rng.standard_normal((9, 12)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1)[:, None]
    lengths = [range(1, 21), range(4, 9), range(6, 7)] * 3
    cosines = np.repeat([0.3, 0.5, 0.7], 3).astype(np.float32)
    aim = spans.PhraseBatch(queries, lengths, cosines)
    found = dict(
        spans.scan_passages(bounds, lambda *some: block_of(bounds, words, inverse, *some), aim)
    )
    assert list(found) == sorted(found)
    seen = set()
    for number, passage in enumerate(passages):
        for k, threshold in enumerate(cosines):
            value = best(passage.astype(np.float64), queries[k], lengths[k])
            reached = k in found.get(number, [])
            seen.add(reached)
            if abs(value - threshold) > 2 * reach.TOLERANCE:
                assert reached == (value > threshold), (number, k)
    assert seen == {True, False}


def test_nothing_is_found_in_nothing():
    aim = spans.PhraseBatch(np.eye(4, dtype=np.float32), [range(1, 5)] * 4, np.ones(4, np.float32))
    assert (
        list(spans.scan_passages(np.zeros(1, np.int64), lambda *some: pytest.fail("read"), aim))
        == []
    )


def test_what_the_context_lifts_and_the_head_may_reach_is_found():
    rng = np.random.default_rng(5)
    sizes = [30, 3, 44, 60]
    bounds = np.cumsum([0, *sizes])
    table = rng.standard_normal((50, 12)).astype(np.float32)
    head = quantized(rng.standard_normal((12, 12)).astype(np.float32), table)
    packed = []
    for size in sizes:
        counts = rng.integers(0, 3, size).astype(np.uint8)
        pieces = rng.integers(0, 50, int(counts.sum())).astype(np.int32)
        at = np.arange(size, dtype=np.int32)
        words = Words(at * 2, at * 2 + 1, rng.standard_normal((size, 12)).astype(np.float32))
        words = replace(words, pieces=pieces, counts=counts)
        text = " ".join("a" * size)
        passage = Passage("d", 0, 0, len(text), text)
        packed.append(spans.PackedPassage.pack(words, 20, passage, head))
    queries = rng.standard_normal((4, 12)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1)[:, None]
    weights = [spans.Weights.of(n) for n in (1, 5, 6, 9)]
    lengths, margins = [range(1, 21)] * 4, np.array([0, 0.1, 0.2, 0], np.float32)
    asked = head.project(queries)
    sought = [packed[0].pieces[:3], packed[3].pieces[4:9], np.zeros(0, np.int32), table[:0, 0]]
    sought = [one.astype(np.int32) for one in sought]
    cosines = np.full(4, 0.72, np.float32)
    aim = spans.PhraseBatch(queries, lengths, cosines, weights, margins, sought, asked)
    read = lambda first, last: spans.PassageBlock.of(packed[first:last])  # noqa: E731
    found = dict(spans.scan_passages(bounds, read, aim))
    seen = set()
    for number, one in enumerate(packed):
        inside, by_head = one.vectors.astype(float), one.phrase_vectors(head).astype(float)
        for k in range(4):
            value = max(
                float(weights[k].combine(np.float64(c), np.float64(h) + margins[k]))
                for c, h in zip(
                    *(cosines_of(v, queries[k]) for v in (inside, by_head)), strict=True
                )
            )
            verbatim = len(spans.piece_runs(one.pieces, sought[k])) > 0
            reached = k in found.get(number, [])
            seen.add((reached, verbatim))
            if verbatim or abs(value - 0.72) > 0.01:
                assert reached == (verbatim or value > 0.72), (number, k, value)
    assert len(seen) == 3


def cosines_of(vectors, query):
    for length in range(1, min(20, len(vectors)) + 1):
        for i in range(len(vectors) - length + 1):
            total = vectors[i : i + length].sum(axis=0)
            yield total @ query / np.linalg.norm(total)


def block_of(bounds, words, inverse, first, last):
    part = slice(bounds[first], bounds[last])
    none, counts = np.zeros(0, np.int32), np.zeros(part.stop - part.start, np.uint8)
    return spans.PassageBlock(words[part], inverse[:, part], inverse[:0, part], none, counts)
