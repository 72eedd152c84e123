"""Phrase similarity: the tasks of Phrase-BERT (Wang et al. 2021).

For yes-or-no tasks Phrase-BERT trains a classifier on pairs of vectors, and so does `probe` here.
Beside it the encoder itself is measured: yes is a cosine above a threshold, which is chosen on
other pairs than those measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.calibration.rows import numbered_lines
from slice_os.calibration.thresholds import load_stats
from slice_os.encoders import Encoder, EncoderLike, open_encoder
from slice_os.errors import EvaluationError, MissingExtraError
from slice_os.lab.evaluate.phrase_sets import (
    FILES,
    NEAREST,
    Choice,
    PhrasePair,
    neighbour_diversity,
)
from slice_os.lab.evaluate.probe import probe, raw_vectors
from slice_os.lab.evaluate.scorers import find_words, vector_between
from slice_os.lab.evaluate.significance import correlate
from slice_os.spans.cosines import Float64
from slice_os.text import terms
from slice_os.types import Plain

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
            if all(one in sets for one in needed):
                if progress:
                    progress(name)
                try:
                    figures += measure(name, loaded, *(sets[one] for one in needed))
                except MissingExtraError as exc:
                    left_out[name] = str(exc)
        if vocabulary:
            if progress:
                progress(NEIGHBOURS)
            found = neighbour_diversity(loaded, words)
            figures += [
                Figure(NEIGHBOURS, measure, value, len(words))
                for measure, value in asdict(found).items()
            ]
    return PhraseReport(figures, [name for name in FILES if name not in sets], left_out)


def _correlation(name: str, encoder: Encoder, pairs: list[PhrasePair]) -> Iterator[Figure]:
    yield from _correlated(name, _cosines(encoder, pairs), pairs)


def _correlated(name: str, cosines: Float64, pairs: list[PhrasePair]) -> Iterator[Figure]:
    found = correlate(cosines, [pair.score for pair in pairs])
    yield Figure(name, "Pearson", found.pearson, len(pairs))
    yield Figure(name, "Spearman", found.spearman, len(pairs))


def _turney(name: str, encoder: Encoder, examples: list[Choice]) -> Iterator[Figure]:
    texts = sorted({text for one in examples for text in (one.phrase, *one.choices)})
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))
    raw = dict(zip(texts, raw_vectors(encoder, texts), strict=True))
    others, products = "without the components", "without the components, dot products"
    right = {"all choices": 0, others: 0, products: 0}
    for one in examples:
        cosines = [float(vectors[one.phrase] @ vectors[choice]) for choice in one.choices]
        dots = [float(raw[one.phrase] @ raw[choice]) for choice in one.choices]
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
    unlike = np.array([not set(terms(one.first)) & set(terms(one.second)) for one in test])
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
    ("BiRD", ("bird",), _correlation),
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
    said = [
        (phrase, sentence)
        for pair in pairs
        for phrase, sentence in zip((pair.first, pair.second), pair.contexts or (), strict=True)
    ]
    vectors = []
    for (phrase, sentence), words in zip(
        said, encoder.encode_words(sentence for _, sentence in said), strict=True
    ):
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
    said = np.asarray(yes)[order]
    # Right, if all up to a place are no and all after it are yes.
    right = np.concatenate([[0], np.cumsum(~said)]) + np.concatenate(
        [[said.sum()], said.sum() - np.cumsum(said)]
    )
    between = np.diff(cosines[order]) > 0  # no threshold parts equal cosines
    right[1:-1][~between] = -1
    place = int(right.argmax())
    bounds = [-1.0, *cosines[order].tolist(), 1.0]
    return float(bounds[place] + bounds[place + 1]) / 2
