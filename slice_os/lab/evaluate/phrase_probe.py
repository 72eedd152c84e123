"""The probe of phrase vectors: a perceptron with a hidden layer over two phrases' vectors, joined.

Phrase-BERT's (Wang et al. 2021, sections 4.1 and 4.2); how it learns is from its public code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.encoders import Encoder
from slice_os.errors import EvaluationError, needs
from slice_os.lab.evaluate.phrase_sets import PhrasePair
from slice_os.types import Float32

Bools = npt.NDArray[np.bool_]

SEED = 42
SHARES = (0.7, 0.15, 0.15)
"""Of the pairs that a probe learns from, stops by, and is measured on."""
HIDDEN, RATE, BATCH = 256, 1e-4, 200
EPOCHS, PATIENCE = (3, 100), 5
LIKE_THE_PAPER = {"random": 23_364, "one word": 19_416}
"""How many pairs the paper has, half of them paraphrases, of each kind of negatives."""
_TRIES = 50


class Judged(NamedTuple):
    """Two phrases, and whether they are paraphrases."""

    first: str
    second: str
    yes: bool


def split_paraphrases(pairs: Sequence[PhrasePair]) -> list[list[PhrasePair]]:
    """Return the pairs to learn from, to stop by and to measure on; the same each time.

    Pairs have no order: those of the same two phrases are in one part. What an encoder learns from
    should be of the first, or the probe measures what it has seen.
    """
    rows_of = defaultdict(list)
    for pair in pairs:
        rows_of[frozenset((pair.first, pair.second))].append(pair)
    distinct = list(rows_of.values())
    order = np.random.default_rng(SEED).permutation(len(distinct))
    bounds = np.rint(np.cumsum([0.0, *SHARES]) * len(distinct)).astype(int)
    return [
        [pair for k in order[start:end] for pair in distinct[k]] for start, end in pairwise(bounds)
    ]


def probe_sets(pairs: Sequence[PhrasePair], kind: str) -> list[list[Judged]]:
    """Return paraphrases, each with a pair that is none, to learn from, stop by and measure on.

    The other pair has the same first phrase and

    - ("random") any other phrase, which makes the paper's PPDB;
    - ("one word") a phrase that shares exactly one word with it, the one that the paraphrases
      share, which must be one too: PPDB-filtered, by Yu and Ettinger's rule. Each word is shared as
      often by paraphrases as by others, so that words in common tell nothing.
    """
    known = {frozenset((pair.first, pair.second)) for pair in pairs}
    rng = np.random.default_rng(SEED)
    sets = []
    for part, share in zip(split_paraphrases(pairs), SHARES, strict=True):
        most = round(LIKE_THE_PAPER[kind] / 2 * share)
        # Of the same side: a side's phrases may be of a kind.
        phrases = sorted({pair.second for pair in part})
        holding = defaultdict(list)
        for phrase in phrases:
            for word in set(phrase.split()):
                holding[word].append(phrase)
        rows: list[Judged] = []
        for pair in part:
            if len(rows) == 2 * most:
                break
            shared = _shared(pair.first, pair.second)
            if kind == "random":
                others = phrases
            elif len(shared) == 1:
                others = holding[min(shared)]
            else:
                continue
            for _ in range(_TRIES):
                other = others[rng.integers(len(others))]
                new = frozenset((pair.first, other)) not in known and other != pair.first
                if new and (kind == "random" or _shared(pair.first, other) == shared):
                    rows += [
                        Judged(pair.first, pair.second, True),
                        Judged(pair.first, other, False),
                    ]
                    break
        sets.append(rows)
    return sets


def balanced_sets(pairs: Sequence[PhrasePair]) -> list[list[Judged]]:
    """Return pairs of yes and no to learn from, stop by and measure on, as many of each.

    The paper's PAWS-short. Of the more frequent answer those that come first in a part are taken,
    whose order is random.
    """
    sets = []
    for part in split_paraphrases(pairs):
        answers = [
            [Judged(pair.first, pair.second, yes) for pair in part if (pair.score > 0) == yes]
            for yes in (True, False)
        ]
        most = min(map(len, answers))
        sets.append([row for rows in answers for row in rows[:most]])
    return sets


def probe(
    encoder: Encoder,
    sets: Sequence[Sequence[Judged]],
    progress: Callable[[str], None] | None = None,
) -> Bools:
    """Train the probe and return whether it is right of each pair that it has not seen, ``[n]``.

    `sets` are pairs to learn from, to stop by and to measure on (`probe_sets`, `balanced_sets`).
    `progress` is told of each epoch and its accuracy on the pairs that the probe stops by.
    """
    with needs("The probe of phrase vectors", "train"):
        import torch
    if not all(sets):
        raise EvaluationError("No paraphrases are left to probe with: give more of them.")
    texts = sorted({text for rows in sets for row in rows for text in (row.first, row.second)})
    rows_of = {text: row for row, text in enumerate(texts)}
    vectors = torch.from_numpy(raw_vectors(encoder, texts))
    parts = []
    for rows in sets:
        both = torch.tensor([[rows_of[row.first], rows_of[row.second]] for row in rows])
        parts.append((both, torch.tensor([float(row.yes) for row in rows])))
    (learnt, learnt_yes), held_out, unseen = parts
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = torch.nn.Sequential(
            torch.nn.Linear(2 * vectors.shape[1], HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(HIDDEN, 1),
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        loss_of = torch.nn.BCEWithLogitsLoss()

        def logits(both: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = model(vectors[both].flatten(1))[:, 0]
            return out

        def right(both: torch.Tensor, yes: torch.Tensor) -> Bools:
            with torch.no_grad():
                found: Bools = ((logits(both) > 0) == (yes > 0)).numpy()
            return found

        best, best_at, kept = -1.0, 0, deepcopy(model.state_dict())
        for epoch in range(1, EPOCHS[1] + 1):
            for batch in torch.split(torch.randperm(len(learnt)), BATCH):
                optimizer.zero_grad()
                loss_of(logits(learnt[batch]), learnt_yes[batch]).backward()
                optimizer.step()
            accuracy = float(right(*held_out).mean())
            if accuracy > best:
                best, best_at, kept = accuracy, epoch, deepcopy(model.state_dict())
            if progress:
                progress(f"epoch {epoch}: {accuracy:.3f}")
            if epoch >= EPOCHS[0] and epoch - best_at >= PATIENCE:
                break
        model.load_state_dict(kept)
        return right(*unseen)


def raw_vectors(encoder: Encoder, texts: Sequence[str]) -> Float32:
    """Return the means of texts' token vectors, float32 ``[n, d]``, not scaled to unit length."""
    vectors = np.zeros((len(texts), encoder.info.dimension), np.float32)
    for row, tokens in enumerate(encoder.encode_tokens(texts)):
        if len(tokens):
            vectors[row] = tokens.vectors.mean(axis=0)
    return vectors


def _shared(first: str, second: str) -> set[str]:
    return set(first.split()) & set(second.split())
