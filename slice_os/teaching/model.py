"""The model of a taught phrase: a linear classifier of span vectors, drawn towards the phrase.

With v a unit span vector, q the phrase's, and passages as bags of spans of which the best counts,

    f(passage) = max over its spans of w . v + b,    w = k q + u

is fitted by logistic regression with a penalty on u and, a small one, on k: without labels it ranks
as the phrase does, with each it may turn further away. The best spans are chosen again after each
fit (Andrews et al. 2003, MI-SVM, sections 3 and 4, with the logistic loss): of a passage that
was answered yes one span is right, of one that was answered no all are wrong, so its best few.
Passages at random count a little as wrong. What is found is a query vector w / |w| again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.teaching.pool import Best, Pool, Span
from slice_os.types import Float32

Float64 = npt.NDArray[np.float64]
FOLDS = 5
WEAK = 120
"""Passages at random that count a little as wrong."""


@dataclass(frozen=True, slots=True)
class Learning:
    """How a phrase is learnt; the defaults were chosen on development sets (docs/teaching.md).

    Attributes:
        scale: k without labels: what a cosine is multiplied with.
        turning: The penalties on |u|^2 / 2, how hard it is to turn away from the phrase, and
            whether u is measured where spans of the index vary alike in all directions. Of several
            the mean model is taken, which is linear too.
        caution: With n answers the penalties are 1 + caution / n times as large.
        scaling: The penalty on the change of k.
        rounds: How often the best spans are chosen again.
        spans: How many spans of a passage that was answered no count.
        weak: What all the passages at random count together, in answers.
    """

    scale: float = 10.0
    turning: Sequence[tuple[float, bool]] = ((0.1, False), (0.02, False), (0.01, True))
    caution: float = 5.0
    scaling: float = 0.02
    rounds: int = 2
    spans: int = 3
    weak: float = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a person said of a passage of the pool: its row, yes or no, and which words, if said."""

    row: int
    right: bool
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The vector w, float64 ``[d]``, and b: the logit of a span v is w . v + b."""

    vector: Float64
    bias: float

    def best(self, pool: Pool) -> tuple[Float64, Best]:
        """Return the logits of all passages, float64 ``[P]``, and their best spans."""
        best = pool.best(self.vector.astype(np.float32))
        return best.cosines.astype(np.float64) + self.bias, best


class Learner:
    """Fits models of one phrase in one pool."""

    def __init__(self, pool: Pool, phrase: Float32, how: Learning, seed: int = 0) -> None:
        """Begin with the unit vector of the phrase, float32 ``[d]``."""
        self.pool, self.how = pool, how
        self.phrase = phrase.astype(np.float64)
        rng = np.random.default_rng(seed)
        drawn = np.flatnonzero(~np.array(pool.found, bool))
        drawn = drawn if len(drawn) else np.arange(len(pool))
        self.weak: list[int] = rng.permutation(drawn)[:WEAK].tolist()
        self._first: tuple[tuple[int, range], Best] | None = None
        self._even = self._evening(rng) if any(even for _, even in how.turning) else None

    def _evening(self, rng: np.random.Generator) -> Float64:
        """Return C^-1/2, ``[d, d]``, of the covariance C of spans at random, shrunk by half."""
        pool, spans = self.pool, []
        longest = pool.window.stop - 1
        for row in self.weak * 3:
            count = len(pool.stored[row].packed)
            length = min(int(rng.integers(pool.window.start, longest + 1)), count)
            start = int(rng.integers(0, count - length + 1))
            spans.append((row, start, start + length))
        vectors = pool.vectors(spans).astype(np.float64)
        vectors -= vectors.mean(axis=0)
        values, axes = np.linalg.eigh(vectors.T @ vectors / len(vectors))
        values = np.maximum(values, 0) + max(float(values.mean()), 1e-12)
        evening: Float64 = (axes * np.sqrt(values.mean() / values)) @ axes.T
        return evening

    def fit(self, answers: Sequence[Answer], start: Model | None = None) -> Model:
        """Return the model of some answers; `start` is one of fewer, whose best spans are taken."""
        how, q = self.how, self.phrase
        model = start or Model(how.scale * q, 0.0)
        best = self._by_phrase() if start is None else model.best(self.pool)[1]
        caution = 1 + how.caution / max(len(answers), 1)
        for number in range(how.rounds):
            best = model.best(self.pool)[1] if number else best
            spans, right, counts = self._examples(answers, best)
            v = self.pool.vectors(spans).astype(np.float64)
            along = v @ q
            vectors, biases = [], []
            for turning, even in how.turning:
                turned = self._even if even else None
                evened = v if turned is None else v @ turned
                inputs = np.column_stack((evened, along, np.ones(len(v))))
                penalties = np.full(inputs.shape[1], turning * caution)
                penalties[-2:] = how.scaling, 1e-3
                solution = logistic(inputs, right, counts, penalties, how.scale * along)
                u = solution[:-2] if turned is None else turned @ solution[:-2]
                vectors.append(u + (how.scale + solution[-2]) * q)
                biases.append(solution[-1])
            model = Model(np.mean(vectors, axis=0), float(np.mean(biases)))
        return model

    def _by_phrase(self) -> Best:
        """Return the best spans for the phrase itself, found once for a pool as it is."""
        known = len(self.pool), self.pool.window
        if self._first is None or self._first[0] != known:
            self._first = known, self.pool.best(self.phrase.astype(np.float32))
        return self._first[1]

    def _examples(
        self, answers: Sequence[Answer], best: Best
    ) -> tuple[list[Span], Float64, Float64]:
        """Return spans, whether they are right, and what each counts."""
        pool = self.pool
        spans: list[Span] = []
        right: list[bool] = []
        counts: list[float] = []

        def count(group: Sequence[Span], is_right: bool, weight: float) -> None:
            spans.extend(group)
            right.extend([is_right] * len(group))
            counts.extend([weight / len(group)] * len(group))

        for answer in answers:
            if answer.right:
                count([answer.span] if answer.span else pool.top(best, answer.row, 1), True, 1.0)
            else:
                count(pool.top(best, answer.row, self.how.spans), False, 1.0)
        known = {answer.row for answer in answers}
        others = [row for row in self.weak if row not in known]
        for row in others:
            count(pool.top(best, row, 1), False, self.how.weak / len(others))
        y, each = np.array(right, float), np.array(counts)
        if y.any():  # few answers yes count as much as all that count no
            each[y > 0] *= max(1.0, each[y == 0].sum() / each[y > 0].sum())
        return spans, y, each

    def apart(self, answers: Sequence[Answer]) -> Float64:
        """Return the logit of each answer's passage by a model of the others, float64 ``[n]``.

        Answers are cut into `FOLDS`, with as many right ones in each.
        """
        right = np.array([answer.right for answer in answers], bool)
        rng = np.random.default_rng(0)
        fold = np.zeros(len(answers), int)
        for which in (right, ~right):
            rows = np.flatnonzero(which)
            fold[rng.permutation(rows)] = np.arange(len(rows)) % FOLDS
        apart = np.zeros(len(answers))
        for k in np.unique(fold).tolist():
            rest = [answer for answer, its_fold in zip(answers, fold, strict=True) if its_fold != k]
            logits, _ = self.fit(rest).best(self.pool)
            for n in np.flatnonzero(fold == k).tolist():
                apart[n] = logits[answers[n].row]
        return apart

    def calibrate(self, answers: Sequence[Answer], model: Model) -> Calibration:
        """Return what makes of a logit of `model` the logit of a probability.

        By logistic regression of the answers on logits of models that had not seen them (Platt
        1999), drawn towards the logits as they are. What was asked was chosen by its score, and
        given the score an answer is as likely whoever chose it: so they need no weights here.
        Passages at random, of which nearly all are wrong, hold the far end.
        """
        known = {answer.row for answer in answers}
        rest = [row for row in self.weak if row not in known]
        far = model.best(self.pool)[0][rest]
        apart = self.apart(answers)
        logits = np.concatenate([apart, far])
        right = np.concatenate([[answer.right for answer in answers], np.zeros(len(far))])
        counts = np.concatenate([np.ones(len(answers)), np.full(len(far), 2 / max(len(far), 1))])
        inputs = np.column_stack((logits, np.ones(len(logits))))
        slope, shift = logistic(inputs, right, counts, np.array([1.0, 0.1]), logits)
        return Calibration(max(1 + float(slope), 0.05), float(shift), apart)


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A probability is 1 / (1 + exp(-(slope f + shift))) of a logit f of a model.

    `apart` are the logits of the answers, float64 ``[n]``, by models that had not seen them.
    """

    slope: float
    shift: float
    apart: Float64

    def probabilities(self, logits: Float64) -> Float64:
        """Return the probabilities of logits, of any shape."""
        return sigmoid(self.slope * logits + self.shift)


def logistic(
    inputs: Float64, right: Float64, counts: Float64, penalties: Float64, offset: Float64
) -> Float64:
    """Return the t, ``[p]``, of the least penalised logistic loss of ``inputs @ t + offset``.

    Newton's method with steps that are halved until the loss falls. Where there are more inputs p
    than rows n, its equations are solved by Woodbury's identity in n unknowns.

    Args:
        inputs: ``[n, p]``.
        right: ``[n]``, from 0 to 1.
        counts: ``[n]``, what each row counts.
        penalties: ``[p]``, each above 0: t has the penalty ``penalties @ t**2 / 2``.
        offset: ``[n]``.
    """
    scales = 1 / np.sqrt(penalties)
    scaled = inputs * scales
    wide = scaled.shape[1] > len(scaled)
    gram = scaled @ scaled.T if wide else np.zeros((0, 0))
    at = np.zeros(scaled.shape[1])

    def loss(t: Float64) -> float:
        logits = scaled @ t + offset
        return float(counts @ (np.logaddexp(0, logits) - right * logits) + t @ t / 2)

    now = loss(at)
    for _ in range(30):
        chance = sigmoid(scaled @ at + offset)
        slope = scaled.T @ (counts * (chance - right)) + at
        bend = np.maximum(counts * chance * (1 - chance), 1e-9)
        if wide:
            system = gram.copy()
            system[np.diag_indices_from(system)] += 1 / bend
            step = slope - scaled.T @ np.linalg.solve(system, scaled @ slope)
        else:
            step = np.linalg.solve(np.eye(len(at)) + (scaled.T * bend) @ scaled, slope)
        size = 1.0
        while (then := loss(at - size * step)) > now and size > 1e-4:
            size /= 2
        if then > now:
            break
        at = at - size * step
        if now - then < 1e-6 * max(1.0, now):
            break
        now = then
    return at * scales


def sigmoid(logits: npt.NDArray[Any] | float) -> Float64:
    """Return 1 / (1 + e^-x), of any shape."""
    shares: Float64 = 1 / (1 + np.exp(-np.clip(logits, -500, 500)))
    return shares
