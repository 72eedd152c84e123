"""Which passages reach a threshold, against the cosine of every span by itself."""

import numpy as np
import pytest

from slice_os import spans
from slice_os.spans import reach


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
    monkeypatch.setattr(reach, "BLOCK_PHRASES", phrases)
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
    found = dict(
        spans.reaching(
            bounds, lambda part: (words[part], inverse[:, part]), queries, lengths, cosines
        )
    )
    assert list(found) == sorted(found)
    seen = set()
    for number, passage in enumerate(passages):
        for k, threshold in enumerate(cosines):
            value = best(passage.astype(np.float64), queries[k], lengths[k])
            reached = k in found.get(number, [])
            seen.add(reached)
            if abs(value - threshold) > 2 * reach.MARGIN:
                assert reached == (value > threshold), (number, k)
    assert seen == {True, False}


def test_nothing_is_found_in_nothing():
    empty = np.zeros((0, 4), np.float32)
    found = spans.reaching(
        np.zeros(1, np.int64), lambda part: (empty, empty), np.eye(4), [range(1, 5)] * 4, np.ones(4)
    )
    assert list(found) == []
