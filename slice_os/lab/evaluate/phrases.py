"""Phrase similarity: the tasks of Phrase-BERT (Wang et al. 2021).

For yes-or-no tasks Phrase-BERT trains a probe (`phrase_probe`). Beside it the encoder itself is
measured: yes is a cosine above a threshold, which is chosen on other pairs than those measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.corpus.data_files import numbered_lines
from slice_os.encoders import Encoder, EncoderLike
from slice_os.errors import EvaluationError, MissingExtraError
from slice_os.lab.evaluate.compared import listed, open_each
from slice_os.lab.evaluate.phrase_probe import (
    Bools,
    balanced_sets,
    probe,
    probe_sets,
    raw_vectors,
)
from slice_os.lab.evaluate.phrase_sets import (
    FILES,
    NEAREST,
    Choice,
    PhrasePair,
    neighbour_diversity,
)
from slice_os.lab.evaluate.scorers import find_words, vector_between
from slice_os.lab.evaluate.significance import FEWEST, compare, correlate, load_stats
from slice_os.spans.cosines import Float64
from slice_os.text import terms
from slice_os.types import Plain

NEIGHBOURS = f"{NEAREST} nearest phrases"
PARAPHRASE, NO_PARAPHRASE = 3.5, 2.5
"""PPDB's scores are 1 to 5: pairs between these bounds are left out."""


@dataclass(frozen=True, slots=True)
class Figure(Plain):
    """A measure of a task: its value for an encoder, and the number of examples.

    `p` is two-sided, that the encoder differs from the best of several: by Williams' test of a
    correlation, by McNemar's exact test of an accuracy. None of the best, and where nothing is
    compared.
    """

    encoder: str
    task: str
    measure: str
    value: float
    count: int
    p: float | None = None


@dataclass(frozen=True, slots=True)
class PhraseReport(Plain):
    """What `evaluate_phrases` found.

    `encoders` are their names, in the order given; `absent` are sets whose file is not in the
    folder; `left_out` says why a task was not measured: a package or enough pairs are missing.
    """

    encoders: Sequence[str]
    figures: Sequence[Figure]
    absent: Sequence[str]
    left_out: Mapping[str, str]


class _Measured(NamedTuple):
    """A figure of one encoder, and of each example what it is a figure of.

    `outcomes` are what correlates with `gold`, or, without gold, whether the answer is right; None
    if there is nothing to test.
    """

    task: str
    measure: str
    value: float
    examples: int
    outcomes: npt.NDArray[Any] | None = None
    gold: npt.NDArray[Any] | None = None

    def differs(self, other: _Measured) -> float | None:
        """Return the p-value that this figure and another encoder's differ."""
        if self.outcomes is None or other.outcomes is None:
            return None
        if self.gold is not None and self.examples < FEWEST:
            return None
        if self.gold is not None:
            return compare(self.outcomes, other.outcomes, self.gold.tolist()).p
        more, fewer = (self.outcomes > other.outcomes).sum(), (self.outcomes < other.outcomes).sum()
        if not more + fewer:
            return 1.0
        return float(load_stats().binomtest(int(more), int(more + fewer)).pvalue)


def evaluate_phrases(
    folder: str | Path,
    *,
    encoder: EncoderLike | Sequence[EncoderLike] = None,
    vocabulary: str | Path | None = None,
    device: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> PhraseReport:
    """Measure an encoder, or several, on the phrase tasks whose files lie in `folder`.

    Args:
        folder: Holds some of bird.txt, turney.txt, ppdb-train.txt, ppdb-dev.txt and ppdb-test.txt,
            paws.tsv, pic-ps-train.json and pic-ps-dev.json.
        encoder: What `slice_os.load_encoder` takes, or several to compare with the best of them,
            measure by measure.
        vocabulary: A file with a word or phrase a line, whose nearest neighbours are compared.
        device: Where an encoder that is loaded here runs.
        progress: Called with each task as it begins.

    Raises:
        EvaluationError: The folder holds none of the files, or one that is not what it should be.
        MissingExtraError: scipy is not installed, or torch where a checkpoint is given.
    """
    folder, encoders = Path(folder), listed(encoder)
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
    if not encoders:
        raise EvaluationError("No encoder is given: give one, or None for the one inside.")
    load_stats()  # before the work: it may be missing
    words = [text for _, text in numbered_lines(Path(vocabulary))] if vocabulary else []
    measured: dict[str, list[_Measured]] = {}
    left_out: dict[str, str] = {}
    for named, loaded in open_each(encoders, device):
        told = f"{named}: " if len(encoders) > 1 else ""
        found = measured.setdefault(named, [])
        for name, needed, measure in TASKS:
            if all(needed_set in sets for needed_set in needed):
                if progress:
                    progress(f"{told}{name}")
                try:
                    found += measure(name, loaded, *(sets[needed_set] for needed_set in needed))
                except (EvaluationError, MissingExtraError) as exc:
                    left_out[name] = str(exc)
        if vocabulary:
            if progress:
                progress(f"{told}{NEIGHBOURS}")
            diversity = asdict(neighbour_diversity(loaded, words))
            found += [_Measured(NEIGHBOURS, *pair, len(words)) for pair in diversity.items()]
    figures = []
    for of_measure in zip(*measured.values(), strict=True):  # each encoder has the same measures
        best = max(of_measure, key=lambda each: np.nan_to_num(each.value, nan=-np.inf))
        figures += [
            Figure(
                name,
                found.task,
                found.measure,
                found.value,
                found.examples,
                None if found is best else found.differs(best),
            )
            for name, found in zip(measured, of_measure, strict=True)
        ]
    absent = [name for name in FILES if name not in sets]
    return PhraseReport(list(measured), figures, absent, left_out)


def _correlated(name: str, cosines: Float64, pairs: list[PhrasePair]) -> Iterator[_Measured]:
    gold = np.array([pair.score for pair in pairs])
    correlation = correlate(cosines, gold.tolist())
    yield _Measured(name, "Pearson", correlation.pearson, len(pairs), cosines, gold)
    ranks = load_stats().rankdata
    yield _Measured(name, "Spearman", correlation.spearman, len(pairs), ranks(cosines), ranks(gold))


def _answered(name: str, right: Bools) -> _Measured:
    return _Measured(name, "accuracy", float(right.mean()), len(right), right)


def _turney(name: str, encoder: Encoder, examples: list[Choice]) -> Iterator[_Measured]:
    texts = sorted({text for example in examples for text in (example.phrase, *example.choices)})
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))
    raw = dict(zip(texts, raw_vectors(encoder, texts), strict=True))
    others, products = "without the components", "without the components, dot products"
    right: dict[str, list[bool]] = {"all choices": [], others: [], products: []}
    for example in examples:
        cosines = [float(vectors[example.phrase] @ vectors[choice]) for choice in example.choices]
        dots = [float(raw[example.phrase] @ raw[choice]) for choice in example.choices]
        # A tie is no answer.
        right["all choices"].append(cosines[0] > max(cosines[1:]))
        right[others].append(cosines[0] > max(cosines[3:], default=-np.inf))
        right[products].append(dots[0] > max(dots[3:], default=-np.inf))
    for how, answers in right.items():
        yield _answered(f"{name}, {how}", np.array(answers))


def _ppdb(
    name: str, encoder: Encoder, dev: list[PhrasePair], test: list[PhrasePair]
) -> Iterator[_Measured]:
    cosines = _cosines(encoder, test)
    yield from _correlated(name, cosines, test)
    judged, yes = _judged(dev)
    threshold = _threshold(_cosines(encoder, dev)[judged], yes[judged])
    judged, yes = _judged(test)
    unlike = np.array([not set(terms(pair.first)) & set(terms(pair.second)) for pair in test])
    for task, kept in ((name, judged), (f"{name}, no common word", judged & unlike)):
        yield from _accuracy(task, cosines[kept], yes[kept], threshold)


def _probed(name: str, encoder: Encoder, pairs: list[PhrasePair]) -> Iterator[_Measured]:
    for task, kind in ((name, "random"), (f"{name}, filtered", "one word")):
        yield _answered(task, probe(encoder, probe_sets(pairs, kind)))


def _yes_or_no(
    name: str, encoder: Encoder, train: list[PhrasePair], dev: list[PhrasePair]
) -> Iterator[_Measured]:
    yes = np.array([pair.score > 0 for pair in dev])
    for task, cosines in ((name, _cosines), (f"{name}, in context", _contextual)):
        threshold = _threshold(cosines(encoder, train), [pair.score > 0 for pair in train])
        yield from _accuracy(task, cosines(encoder, dev), yes, threshold)


def _halves(name: str, encoder: Encoder, pairs: list[PhrasePair]) -> Iterator[_Measured]:
    """Measure each half of the pairs with the threshold of the other."""
    cosines, yes = _cosines(encoder, pairs), np.array([pair.score > 0 for pair in pairs])
    even, right = np.arange(len(pairs)) % 2 == 0, np.zeros(len(pairs), bool)
    for here, there in ((even, ~even), (~even, even)):
        right[there] = (cosines[there] > _threshold(cosines[here], yes[here])) == yes[there]
    yield _answered(name, right)


TASKS: Sequence[tuple[str, tuple[str, ...], Callable[..., Iterable[_Measured]]]] = (
    (
        "BiRD",
        ("bird",),
        lambda name, encoder, pairs: _correlated(name, _cosines(encoder, pairs), pairs),
    ),
    ("Turney", ("turney",), _turney),
    ("PPDB", ("ppdb-dev", "ppdb-test"), _ppdb),
    ("PPDB, probe", ("ppdb-train",), _probed),
    ("PAWS-short", ("paws",), _halves),
    (
        "PAWS-short, probe",
        ("paws",),
        lambda name, encoder, pairs: [_answered(name, probe(encoder, balanced_sets(pairs)))],
    ),
    ("PiC-PS", ("pic-train", "pic-dev"), _yes_or_no),
)
"""A task, the sets that it needs, and what measures it."""


def _accuracy(name: str, cosines: Float64, yes: Bools, threshold: float) -> Iterator[_Measured]:
    if not len(yes):
        return
    yield _answered(name, (cosines > threshold) == yes)
    same = float(max(yes.mean(), 1 - yes.mean()))
    yield _Measured(name, "accuracy of the majority class", same, len(yes))


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
