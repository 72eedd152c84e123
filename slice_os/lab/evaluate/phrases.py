"""Phrase similarity: the tasks of Phrase-BERT (Wang et al. 2021).

For yes-or-no tasks Phrase-BERT trains a perceptron with one hidden layer over two phrases' vectors,
joined (sections 4.1 and 4.2), and so does `probe` here; how it learns is from its public code.
Beside it the encoder itself is measured: yes is a cosine above a threshold, which is chosen on
other pairs than those measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.corpus.data_files import numbered_lines
from slice_os.encoders import Encoder, EncoderLike, open_encoder
from slice_os.errors import EvaluationError, MissingExtraError, needs
from slice_os.lab.evaluate.phrase_sets import (
    FILES,
    NEAREST,
    Choice,
    PhrasePair,
    neighbour_diversity,
)
from slice_os.lab.evaluate.scorers import find_words, vector_between
from slice_os.lab.evaluate.significance import correlate, load_stats
from slice_os.spans.cosines import Float64
from slice_os.text import terms
from slice_os.types import Float32, Plain

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

    What an encoder learns from should be of the first, or the probe measures what it has seen.
    """
    order = np.random.default_rng(SEED).permutation(len(pairs))
    bounds = np.rint(np.cumsum([0.0, *SHARES]) * len(pairs)).astype(int)
    return [[pairs[k] for k in order[start:end]] for start, end in pairwise(bounds)]


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
        if not rows:
            raise EvaluationError(
                f"Of {len(pairs)} paraphrases none are left to probe with: give more."
            )
        sets.append(rows)
    return sets


def probe(
    encoder: Encoder,
    pairs: Sequence[PhrasePair],
    kind: str,
    progress: Callable[[str], None] | None = None,
) -> tuple[float, int]:
    """Train the probe and return its accuracy on pairs that it has not seen, and their number.

    `pairs` are paraphrases; `kind` says what pairs are none (`probe_sets`). `progress` is told of
    each epoch and its accuracy on the pairs that the probe stops by.
    """
    with needs("The probe of phrase vectors", "train"):
        import torch
    sets = probe_sets(pairs, kind)
    texts = sorted({text for rows in sets for row in rows for text in (row.first, row.second)})
    rows_of = {text: row for row, text in enumerate(texts)}
    vectors = torch.from_numpy(raw_vectors(encoder, texts))
    parts = []
    for rows in sets:
        both = torch.tensor([[rows_of[one.first], rows_of[one.second]] for one in rows])
        parts.append((both, torch.tensor([float(one.yes) for one in rows])))
    (learnt, learnt_yes), (held, held_yes), (unseen, unseen_yes) = parts
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

        def accuracy(both: torch.Tensor, yes: torch.Tensor) -> float:
            with torch.no_grad():
                return float(((logits(both) > 0) == (yes > 0)).float().mean())

        best, best_at, kept = -1.0, 0, deepcopy(model.state_dict())
        for epoch in range(1, EPOCHS[1] + 1):
            for batch in torch.split(torch.randperm(len(learnt)), BATCH):
                optimizer.zero_grad()
                loss_of(logits(learnt[batch]), learnt_yes[batch]).backward()
                optimizer.step()
            right = accuracy(held, held_yes)
            if right > best:
                best, best_at, kept = right, epoch, deepcopy(model.state_dict())
            if progress:
                progress(f"epoch {epoch}: {right:.3f}")
            if epoch >= EPOCHS[0] and epoch - best_at >= PATIENCE:
                break
        model.load_state_dict(kept)
        return accuracy(unseen, unseen_yes), len(unseen)


def raw_vectors(encoder: Encoder, texts: Sequence[str]) -> Float32:
    """Return the means of texts' token vectors, float32 ``[n, d]``, not scaled to unit length."""
    vectors = np.zeros((len(texts), encoder.info.dimension), np.float32)
    for row, tokens in enumerate(encoder.encode_tokens(texts)):
        if len(tokens):
            vectors[row] = tokens.vectors.mean(axis=0)
    return vectors


def _shared(first: str, second: str) -> set[str]:
    return set(first.split()) & set(second.split())


NEIGHBOURS = f"{NEAREST} nearest phrases"
PARAPHRASE, NO_PARAPHRASE = 3.5, 2.5
"""PPDB's scores are 1 to 5: pairs between these bounds are left out."""
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Figure(Plain):
    """A measure of a task: its name, its value, and the number of examples."""

    task: str
    measure: str
    value: float
    count: int


@dataclass(frozen=True, slots=True)
class PhraseReport(Plain):
    """What `evaluate_phrases` found.

    `absent` are sets whose file is not in the folder; `left_out` says of a task that lacks a
    package which one.
    """

    figures: Sequence[Figure]
    absent: Sequence[str]
    left_out: Mapping[str, str]


def evaluate_phrases(
    folder: str | Path,
    *,
    encoder: EncoderLike = None,
    vocabulary: str | Path | None = None,
    device: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> PhraseReport:
    """Measure an encoder on the phrase tasks whose files lie in `folder`.

    Args:
        folder: Holds some of bird.txt, turney.txt, ppdb-train.txt, ppdb-dev.txt and ppdb-test.txt,
            paws.tsv, pic-ps-train.json and pic-ps-dev.json.
        encoder: What `slice_os.load_encoder` takes.
        vocabulary: A file with a word or phrase a line, whose nearest neighbours are compared.
        device: Where an encoder that is loaded here runs.
        progress: Called with each task as it begins.

    Raises:
        EvaluationError: The folder holds none of the files, or one that is not what it should be.
        MissingExtraError: scipy is not installed, or torch where a checkpoint is given.
    """
    folder = Path(folder)
    sets = {
        name: read(folder / file)
        for name, (file, read) in FILES.items()
        if (folder / file).is_file()
    }
    if empty := [FILES[name][0] for name, rows in sets.items() if not rows]:
        raise EvaluationError(
            f"{folder / empty[0]} holds nothing to measure: give the published file."
        )
    if not sets:
        files = ", ".join(file for file, _ in FILES.values())
        raise EvaluationError(f"{folder} holds none of {files}: give the folder that has them.")
    load_stats()  # before the work: it may be missing
    words = [text for _, text in numbered_lines(Path(vocabulary))] if vocabulary else []
    figures: list[Figure] = []
    left_out: dict[str, str] = {}
    with open_encoder(encoder, device) as loaded:
        for name, needed, measure in TASKS:
            if all(needed_set in sets for needed_set in needed):
                if progress:
                    progress(name)
                try:
                    figures += measure(name, loaded, *(sets[needed_set] for needed_set in needed))
                except MissingExtraError as exc:
                    left_out[name] = str(exc)
        if vocabulary:
            if progress:
                progress(NEIGHBOURS)
            diversity = neighbour_diversity(loaded, words)
            figures += [
                Figure(NEIGHBOURS, measure, value, len(words))
                for measure, value in asdict(diversity).items()
            ]
    return PhraseReport(figures, [name for name in FILES if name not in sets], left_out)


def _correlated(name: str, cosines: Float64, pairs: list[PhrasePair]) -> Iterator[Figure]:
    correlation = correlate(cosines, [pair.score for pair in pairs])
    yield Figure(name, "Pearson", correlation.pearson, len(pairs))
    yield Figure(name, "Spearman", correlation.spearman, len(pairs))


def _turney(name: str, encoder: Encoder, examples: list[Choice]) -> Iterator[Figure]:
    texts = sorted({text for example in examples for text in (example.phrase, *example.choices)})
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))
    raw = dict(zip(texts, raw_vectors(encoder, texts), strict=True))
    others, products = "without the components", "without the components, dot products"
    right = {"all choices": 0, others: 0, products: 0}
    for example in examples:
        cosines = [float(vectors[example.phrase] @ vectors[choice]) for choice in example.choices]
        dots = [float(raw[example.phrase] @ raw[choice]) for choice in example.choices]
        # A tie is no answer.
        right["all choices"] += cosines[0] > max(cosines[1:])
        right[others] += cosines[0] > max(cosines[3:], default=-np.inf)
        right[products] += dots[0] > max(dots[3:], default=-np.inf)
    for how, count in right.items():
        yield Figure(f"{name}, {how}", "accuracy", count / len(examples), len(examples))


def _ppdb(
    name: str, encoder: Encoder, dev: list[PhrasePair], test: list[PhrasePair]
) -> Iterator[Figure]:
    cosines = _cosines(encoder, test)
    yield from _correlated(name, cosines, test)
    judged, yes = _judged(dev)
    threshold = _threshold(_cosines(encoder, dev)[judged], yes[judged])
    judged, yes = _judged(test)
    unlike = np.array([not set(terms(pair.first)) & set(terms(pair.second)) for pair in test])
    for task, kept in ((name, judged), (f"{name}, no common word", judged & unlike)):
        yield from _accuracy(task, cosines[kept], yes[kept], threshold)


def _probed(name: str, encoder: Encoder, pairs: list[PhrasePair]) -> Iterator[Figure]:
    for task, kind in ((name, "random"), (f"{name}, filtered", "one word")):
        yield Figure(task, "accuracy", *probe(encoder, pairs, kind))


def _yes_or_no(
    name: str, encoder: Encoder, train: list[PhrasePair], dev: list[PhrasePair]
) -> Iterator[Figure]:
    yes = np.array([pair.score > 0 for pair in dev])
    for task, cosines in ((name, _cosines), (f"{name}, in context", _contextual)):
        threshold = _threshold(cosines(encoder, train), [pair.score > 0 for pair in train])
        yield from _accuracy(task, cosines(encoder, dev), yes, threshold)


def _halves(name: str, encoder: Encoder, pairs: list[PhrasePair]) -> Iterator[Figure]:
    """Measure each half of the pairs with the threshold of the other."""
    cosines, yes = _cosines(encoder, pairs), np.array([pair.score > 0 for pair in pairs])
    even = np.arange(len(pairs)) % 2 == 0
    right = sum(
        int(((cosines[there] > _threshold(cosines[here], yes[here])) == yes[there]).sum())
        for here, there in ((even, ~even), (~even, even))
    )
    yield Figure(name, "accuracy", right / len(pairs), len(pairs))


TASKS: Sequence[tuple[str, tuple[str, ...], Callable[..., Iterator[Figure]]]] = (
    (
        "BiRD",
        ("bird",),
        lambda name, encoder, pairs: _correlated(name, _cosines(encoder, pairs), pairs),
    ),
    ("Turney", ("turney",), _turney),
    ("PPDB", ("ppdb-dev", "ppdb-test"), _ppdb),
    ("PPDB, probe", ("ppdb-train",), _probed),
    ("PAWS-short", ("paws",), _halves),
    ("PiC-PS", ("pic-train", "pic-dev"), _yes_or_no),
)
"""A task, the sets that it needs, and what measures it."""


def _accuracy(name: str, cosines: Float64, yes: Bools, threshold: float) -> Iterator[Figure]:
    if not len(yes):
        return
    right = (cosines > threshold) == yes
    yield Figure(name, "accuracy", float(right.mean()), len(yes))
    same = float(max(yes.mean(), 1 - yes.mean()))
    yield Figure(name, "accuracy of the majority class", same, len(yes))


def _cosines(encoder: Encoder, pairs: list[PhrasePair]) -> Float64:
    vectors = encoder.encode([text for pair in pairs for text in (pair.first, pair.second)])
    cosines: Float64 = np.einsum("nd,nd->n", vectors[::2], vectors[1::2]).astype(np.float64)
    return cosines


def _contextual(encoder: Encoder, pairs: list[PhrasePair]) -> Float64:
    """Return the cosines of the phrases' spans in their sentences."""
    phrases = [phrase for pair in pairs for phrase in (pair.first, pair.second)]
    sentences = [sentence for pair in pairs for sentence in pair.contexts or ()]
    vectors = []
    encoded = encoder.encode_words(sentences)
    for phrase, sentence, words in zip(phrases, sentences, encoded, strict=True):
        place = find_words(sentence, phrase) or (0, len(phrase))
        vector = vector_between(words, *place).astype(np.float64)
        vectors.append(vector / max(float(np.linalg.norm(vector)), 1e-12))
    cosines: Float64 = np.einsum("nd,nd->n", np.stack(vectors[::2]), np.stack(vectors[1::2]))
    return cosines


def _judged(pairs: list[PhrasePair]) -> tuple[Bools, Bools]:
    """Return which of PPDB's pairs were clearly judged, and which as paraphrases."""
    scores = np.array([pair.score for pair in pairs])
    return (scores >= PARAPHRASE) | (scores <= NO_PARAPHRASE), scores >= PARAPHRASE


def _threshold(cosines: Float64, yes: Sequence[bool] | Any) -> float:
    """Return the threshold on the cosine that gives the best accuracy."""
    order = np.argsort(cosines, kind="stable")
    sorted_yes = np.asarray(yes)[order]
    # Right, if all up to a place are no and all after it are yes.
    right = np.append(0, np.cumsum(~sorted_yes)) + np.append(0, -np.cumsum(sorted_yes))
    right += sorted_yes.sum()
    between = np.diff(cosines[order]) > 0  # no threshold parts equal cosines
    right[1:-1][~between] = -1
    place = int(right.argmax())
    bounds = [-1.0, *cosines[order].tolist(), 1.0]
    return float(bounds[place] + bounds[place + 1]) / 2
