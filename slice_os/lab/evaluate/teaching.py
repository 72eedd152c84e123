"""Evaluation of teaching: marked spans answer for a person, on half of the documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from slice_os.calibration.gold import GoldSpan, read_gold
from slice_os.encoders import EncoderLike, open_encoder
from slice_os.engine import encode_queries
from slice_os.errors import EvaluationError
from slice_os.host import one_blas_thread
from slice_os.teaching.model import Answer, logistic, sigmoid
from slice_os.teaching.pool import BEST, RANDOM, Pool, lengths_of
from slice_os.teaching.teacher import Teacher
from slice_os.types import Float32, Plain

if TYPE_CHECKING:
    from slice_os.api import Index

Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
BUDGETS = (0, 10, 20, 40, 60)
ROUND = 5
FEWEST = 5
"""Right passages that a query needs in each half of the documents."""
BINS = 10
SEVERAL = 3
"""Marked spans whose words are the further phrases of `several phrases`."""


@dataclass(frozen=True, slots=True)
class Measured(Plain):
    """What one way of ranking passages is worth after some labels, means over the phrases.

    Attributes:
        labels: How many passages were labelled.
        average_precision: On documents that no label is of.
        best_f1: The best F1 that any threshold, one for each phrase, has there.
        f1: F1 at a probability of one half.
        precision: Precision there, over the phrases for which a passage has it.
        silent: The share of phrases for which no passage has it.
        calibration_error: The expected calibration error of all passages, in ten bins.
        likely_error: The same of the passages that have a probability of 0.05 or more.
        worse: The share of phrases whose average precision is below that of the phrase alone.
    """

    labels: int
    average_precision: float
    best_f1: float
    f1: float
    precision: float
    silent: float
    calibration_error: float
    likely_error: float
    worse: float


@dataclass(frozen=True, slots=True)
class TeachingReport(Plain):
    """What `evaluate_teaching` found, by way of ranking; phrases, and passages to judge."""

    phrases: int
    passages: int
    ways: Mapping[str, Sequence[Measured]]


def evaluate_teaching(
    file: str | Path,
    index: Index,
    *,
    budgets: Sequence[int] = BUDGETS,
    phrases: int | None = None,
    passages: EncoderLike = None,
    peers: bool = True,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> TeachingReport:
    """Teach the queries of `file` on half of its documents and judge on the other half.

    A passage is right if a marked span of the query covers half of it, or half of the span is in
    it. What is asked is chosen as in `slice-os teach`; every way of ranking has the same labels.

    Args:
        file: Marked spans: see `slice_os.calibration.gold.read_gold`.
        index: An open index that holds the documents.
        budgets: After how many labels it is measured.
        phrases: At most so many of the queries, chosen at random; all if None.
        passages: The encoder of the passage vectors of the peer; the index's if None.
        peers: Whether others are measured beside it.
        seed: Decides the halves, the queries and what is asked at random.
        progress: Called with what is done, how much of it, and of how much.

    Raises:
        EvaluationError: The file cannot be used, or no query has five right passages in each half.
    """
    gold = read_gold(file)
    halves = _halves(gold, index, seed)
    queries = list(dict.fromkeys(one.query for one in gold))
    right = {query: _right(gold, query, halves) for query in queries}
    names = [query for query, some in right.items() if all(own.sum() >= FEWEST for own in some)]
    if not names:
        raise EvaluationError(
            f"No query of {file} has {FEWEST} right passages in each half of the documents that "
            f"{index.location} holds: mark more spans, or check the documents' ids."
        )
    rng = np.random.default_rng(seed)
    if phrases is not None:
        names = sorted(rng.permutation(names)[:phrases].tolist())
    teach, judged = halves
    dense = _dense(halves, passages, index) if peers else None
    found: dict[str, list[list[Sequence[float]]]] = defaultdict(list)
    with one_blas_thread():
        vectors = encode_queries(index.encoder, names)
        for n, name in enumerate(names):
            one = _Phrase(name, vectors[n], teach, judged, right[name], budgets, seed)
            more = _texts(gold, name, teach, rng) if peers else []
            several = encode_queries(index.encoder, more) if more else vectors[:0]
            for way, rows in one.run(several, dense).items():
                found[way].append(rows)
            if progress:
                progress("phrases", n + 1, len(names))
    base = np.array([rows[0][0] for rows in found["taught"]])
    return TeachingReport(
        len(names), len(judged), {way: _means(budgets, rows, base) for way, rows in found.items()}
    )


def _halves(gold: Sequence[GoldSpan], index: Index, seed: int) -> tuple[Pool, Pool]:
    named = {one.document for one in gold}
    halves = Pool(range(1, 2)), Pool(range(1, 2))
    for stored in index.passages():
        if stored.passage.document in named:
            said = f"{seed} {stored.passage.document}".encode()
            halves[blake2b(said, digest_size=1).digest()[0] % 2].add([stored])
    for pool in halves:
        pool.total = len(pool)
    return halves


def _right(gold: Sequence[GoldSpan], query: str, halves: tuple[Pool, Pool]) -> tuple[Bools, Bools]:
    marked: dict[str, list[GoldSpan]] = defaultdict(list)
    for one in gold:
        if one.query == query:
            marked[one.document].append(one)

    def says(pool: Pool) -> Bools:
        found = np.zeros(len(pool), bool)
        for row, stored in enumerate(pool.stored):
            at = stored.passage
            for one in marked.get(at.document, ()):
                common = min(one.end, at.end) - max(one.start, at.start)
                found[row] |= 2 * common >= min(one.end - one.start, at.end - at.start)
        return found

    return says(halves[0]), says(halves[1])


def _texts(
    gold: Sequence[GoldSpan], query: str, teach: Pool, rng: np.random.Generator
) -> list[str]:
    """Return the words of some marked spans of the half that is taught on, of 12 words at most."""
    texts = {(s.passage.document): s.passage for s in teach.stored}
    some = [g for g in gold if g.query == query and g.document in texts]
    said = []
    for n in rng.permutation(len(some)).tolist():
        at = texts[some[n].document]
        words = at.text[max(some[n].start - at.start, 0) : some[n].end - at.start].split()
        if words:
            said.append(" ".join(words[:12]))
    return said[:SEVERAL]


def _dense(
    halves: tuple[Pool, Pool], encoder: EncoderLike, index: Index
) -> tuple[Float32, Float32]:
    """Return the unit vectors of whole passages, ``[P, d]``, of each half."""
    with open_encoder(index.encoder if encoder is None else encoder) as loaded:
        teach, judged = (
            loaded.encode([one.passage.text for one in pool.stored]) for pool in halves
        )
    return teach, judged


class _Phrase:
    """One phrase, taught and judged."""

    def __init__(
        self,
        name: str,
        vector: Float32,
        teach: Pool,
        judged: Pool,
        right: tuple[Bools, Bools],
        budgets: Sequence[int],
        seed: int,
    ) -> None:
        self.vector, self.judged, self.budgets = vector, judged, budgets
        window = lengths_of([name], (), teach.stored[0].packed.max_words)
        teach.window = judged.window = window
        self.window = window
        rng = np.random.default_rng(seed)
        best = np.argsort(-teach.best(vector).cosines, kind="stable")[:BEST].tolist()
        drawn = rng.permutation(len(teach))[:RANDOM].tolist()
        self.rows = [*best, *(row for row in drawn if row not in set(best))]
        pool = teach.part(self.rows, window)
        pool.found = [n < len(best) for n in range(len(pool))]
        self.right = right[0][self.rows]
        self.truth = right[1]
        self.teacher = Teacher(pool, vector, seed=seed)

    def run(
        self, several: Float32, dense: tuple[Float32, Float32] | None
    ) -> dict[str, list[Sequence[float]]]:
        """Return what is measured after each number of labels, by way of ranking."""
        teacher, found = self.teacher, defaultdict(list)
        alone = self.judged.best(self.vector).cosines.astype(np.float64)
        for budget in self.budgets:
            while len(teacher.answers) < budget:
                rows = teacher.ask(min(ROUND, budget - len(teacher.answers)))
                if not rows:
                    break
                teacher.answers += [Answer(row, bool(self.right[row])) for row in rows]
                teacher.learn()
            ways = {"taught": self._taught(alone)}
            if dense is not None:
                ways["phrase alone"] = self._alone(alone)
                ways["several phrases"] = self._several(alone, several)
                ways["nearest label"] = self._nearest(alone)
                ways["passage vectors"] = self._passages(alone, dense)
            for way, (scores, chances) in ways.items():
                found[way].append(_measure(scores, chances, self.truth))
        return found

    def _taught(self, alone: Float64) -> tuple[Float64, Float64 | None]:
        teacher = self.teacher
        if not teacher.answers:
            return alone, None
        logits, _ = teacher.model.best(self.judged)
        return logits, teacher.calibration.probabilities(logits)

    def _alone(self, alone: Float64) -> tuple[Float64, Float64 | None]:
        """Calibrate the phrase's own cosines with the labels, by Platt's logistic regression."""
        answers, teacher = self.teacher.answers, self.teacher
        if not answers:
            return alone, None
        own = teacher.pool.best(self.vector).cosines.astype(np.float64)
        rows = [answer.row for answer in answers]
        return alone, _platt(own[rows], self.right[rows], alone)

    def _several(self, alone: Float64, several: Float32) -> tuple[Float64, Float64 | None]:
        scores = alone.copy()
        for vector in several:
            scores = np.maximum(scores, self.judged.best(vector).cosines)
        return scores, None

    def _nearest(self, alone: Float64) -> tuple[Float64, Float64 | None]:
        """Score a span by the nearest right span, less the nearest wrong one, of those answered."""
        answers, pool = self.teacher.answers, self.teacher.pool
        if not any(answer.right for answer in answers):
            return alone, None
        best = pool.best(self.vector)
        spans = pool.vectors(
            [(a.row, int(best.starts[a.row]), int(best.ends[a.row])) for a in answers]
        )
        right = [n for n, answer in enumerate(answers) if answer.right]
        scores = alone.copy()
        for n in right:
            scores = np.maximum(scores, self.judged.best(spans[n]).cosines)
        return scores, None

    def _passages(
        self, alone: Float64, dense: tuple[Float32, Float32]
    ) -> tuple[Float64, Float64 | None]:
        """Logistic regression over whole passages, with the random passages as wrong ones."""
        answers, teacher = self.teacher.answers, self.teacher
        if not any(answer.right for answer in answers):
            return alone, None
        rows = [answer.row for answer in answers]
        weak = [row for row in teacher.learner.weak if row not in rows]
        known = dense[0][[self.rows[row] for row in rows + weak]].astype(np.float64)
        right = np.concatenate([self.right[rows], np.zeros(len(weak))]).astype(np.float64)
        counts = np.concatenate([np.ones(len(rows)), np.full(len(weak), 5 / max(len(weak), 1))])
        counts[right > 0] *= max(1.0, counts[right == 0].sum() / counts[right > 0].sum())
        inputs = np.column_stack((known, np.ones(len(known))))
        penalties = np.append(np.full(known.shape[1], 0.1), 1e-3)
        found = logistic(inputs, right, counts, penalties, np.zeros(len(known)))
        scores = dense[1].astype(np.float64) @ found[:-1] + found[-1]
        return scores, sigmoid(scores)


def _platt(known: Float64, right: Bools, scores: Float64) -> Float64:
    inputs = np.column_stack((10 * known, np.ones(len(known))))
    penalties = np.array([1e-2, 1e-3])
    found = logistic(
        inputs, right.astype(np.float64), np.ones(len(known)), penalties, np.zeros(len(known))
    )
    return sigmoid(10 * scores * found[0] + found[1])


def _measure(scores: Float64, chances: Float64 | None, right: Bools) -> Sequence[float]:
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(right[order])
    seen = np.arange(1, len(order) + 1)
    precision = float((hits / seen)[right[order]].mean())
    best = float((2 * hits / (seen + right.sum())).max())
    if chances is None:
        return precision, best, *[np.nan] * 5
    taken = chances >= 0.5
    common, all_of_them = float((taken & right).sum()), float(taken.sum() + right.sum())
    return (
        precision,
        best,
        2 * common / all_of_them,
        common / taken.sum() if taken.any() else np.nan,
        float(not taken.any()),
        _calibration_error(chances, right),
        _calibration_error(chances[chances >= 0.05], right[chances >= 0.05]),
    )


def _calibration_error(chances: Float64, right: Bools) -> float:
    """Return the mean distance of probability and share of right ones, by tenths of the former."""
    if not len(chances):
        return 0.0
    bins = np.minimum((chances * BINS).astype(int), BINS - 1)
    error = 0.0
    for one in np.unique(bins):
        held = bins == one
        error += held.sum() * abs(float(chances[held].mean()) - float(right[held].mean()))
    return error / len(chances)


def _means(
    budgets: Sequence[int], rows: Sequence[Sequence[Sequence[float]]], base: Float64
) -> list[Measured]:
    values = np.array(rows)
    found = []
    for n, budget in enumerate(budgets):
        own = values[:, n]
        held = ~np.isnan(own)
        sums = np.where(held, own, 0).sum(axis=0)
        means = np.where(held.any(axis=0), sums / np.maximum(held.sum(axis=0), 1), np.nan)
        worse = float((own[:, 0] < base - 1e-9).mean())
        found.append(Measured(budget, *means.tolist()[:7], worse))  # type: ignore[call-arg]
    return found
