"""The state of teaching one phrase: the pool, the answers, the model, what is asked next.

No index and no file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from slice_os.teaching.model import Answer, Calibration, Learner, Learning, Model
from slice_os.teaching.pool import Best, Pool, Span
from slice_os.teaching.record import HALF, Estimate, Prototype
from slice_os.types import Float32

Float64 = npt.NDArray[np.float64]
BOUNDARY_RANK = 20
"""Where the boundary is taken to be before there is an answer: the passage of this rank."""
FEWEST = 2
"""Answers of each kind without which the phrase alone is what ranks."""
PLAN = "bnrdnbr"
"""What each question of a round is: one of the best, near to the boundary, at random, disputed."""
ALIKE = 0.95
"""Two spans of this cosine or more say nearly the same: one of them is asked."""
LOOKED_AT = 200
"""Passages of the best of which those are asked that the phrase ranks otherwise."""
CONFIDENCE = 0.95
"""How often an interval holds the true share."""


class Teacher:
    """A phrase that is being taught with the passages of a pool."""

    def __init__(
        self, pool: Pool, phrase: Float32, how: Learning | None = None, seed: int = 0
    ) -> None:
        """Begin with the phrase's unit vector, float32 ``[d]``."""
        self.pool, self.how = pool, how or Learning()
        self.phrase = phrase
        self.learner = Learner(pool, phrase, self.how, seed)
        self.answers: list[Answer] = []
        self.learnt: tuple[Answer, ...] = ()
        """The answers that the model is of."""
        self.skipped: set[int] = set()
        self._rng = np.random.default_rng(seed)
        self._asked = 0
        self.model = self._first()
        self.fallback = True
        self._scored: tuple[Float64, Best] | None = None
        self._calibration: Calibration | None = None

    def _first(self) -> Model:
        """Return the phrase's own model, before there is an answer."""
        cosines = np.sort(self.pool.best(self.phrase).cosines)[::-1]
        at = float(cosines[min(BOUNDARY_RANK, len(cosines)) - 1])
        scale = self.how.scale
        return Model(scale * self.phrase.astype(np.float64), -scale * at)

    def learn(self) -> None:
        """Fit the model to the answers there are."""
        self._scored = self._calibration = None
        self.learnt = tuple(self.answers)
        rights = sum(answer.right for answer in self.answers)
        self.fallback = not rights or len(self.answers) < FEWEST
        if self.fallback:
            self.model = self._first()
            if self.answers:  # nothing but no: the boundary is above what was asked
                only = self.learner.fit(self.answers)
                along = float(only.vector @ self.phrase)
                self.model = Model(max(along, 1.0) * self.phrase.astype(np.float64), only.bias)
            return
        start = None if self.model is None else self.model
        self.model = self.learner.fit(self.answers, start)

    def grown(self) -> None:
        """Look for the best spans anew: the pool has grown. The calibration is of the answers."""
        self._scored = None

    @property
    def scored(self) -> tuple[Float64, Best]:
        """The logits of all passages by the model, float64 ``[P]``, and their best spans."""
        if self._scored is None:
            self._scored = self.model.best(self.pool)
        return self._scored

    @property
    def calibration(self) -> Calibration:
        """What makes probabilities of the logits; computed once a model."""
        if self._calibration is None:
            self._calibration = self.learner.calibrate(self.learnt, self.model)
        return self._calibration

    def ask(self, count: int) -> list[int]:
        """Return the rows of the passages to ask of next."""
        logits, best = self.scored
        if self._calibration is not None:
            logits = self._calibration.slope * logits + self._calibration.shift
        known = {answer.row for answer in self.answers} | self.skipped
        phrase = self.pool.best(self.phrase).cosines.astype(np.float64)
        rows = choose(self.pool, best, logits, phrase, known, count, self._rng, self._asked)
        self._asked += len(rows)
        return rows

    def prototype(self) -> Prototype:
        """Return the model as a query vector with the calibration of its cosine."""
        size = float(np.linalg.norm(self.model.vector))
        slope, shift = 1.0, 0.0
        if self._is_calibrated:
            slope, shift = self.calibration.slope, self.calibration.shift
        return Prototype(
            (self.model.vector / size).astype(np.float32),
            slope * size,
            slope * self.model.bias + shift,
            self.pool.window.start,
            self.pool.window.stop - 1,
        )

    @property
    def _is_calibrated(self) -> bool:
        return len(self.learnt) >= FEWEST

    def estimate(self, probability: float = HALF) -> Estimate | None:
        """Return what the model is worth; None before there are answers.

        What was answered counts as it was, the other passages of the pool by their probabilities,
        all by how many of the index they stand for. The intervals are Wilson's (1927): of the
        precision for as many answers as reach the probability, of the recall for as many that say
        yes; answers count by the models that had not seen them.
        """
        if not self._is_calibrated:
            return None
        chances = self.calibration.probabilities(self.scored[0])
        unseen = self.calibration.probabilities(self.calibration.apart)
        right, rows = chances.copy(), [answer.row for answer in self.learnt]
        right[rows] = [answer.right for answer in self.learnt]
        chances[rows] = unseen
        weights, taken = self.pool.weights, chances >= probability
        marked, right_in_all = float(weights[taken].sum()), float((weights * right).sum())
        common = float((weights * right)[taken].sum())
        precision = common / marked if marked else 0.0
        recall = common / right_in_all if right_in_all else 0.0
        yes = sum(answer.right for answer in self.learnt)
        return Estimate(
            len(self.learnt),
            yes,
            probability,
            precision,
            wilson(precision, int(taken[rows].sum())),
            recall,
            wilson(recall, yes),
            self.fallback,
        )


def wilson(share: float, number: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval (1927) of a share of so many trials; of none, 0 to 1."""
    if not number:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    half = z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2) / (1 + z * z / number)
    return max(0.0, middle - half), min(1.0, middle + half)


def choose(
    pool: Pool,
    best: Best,
    logits: Float64,
    phrase: Float64,
    known: Collection[int],
    count: int,
    rng: np.random.Generator,
    first: int = 0,
) -> list[int]:
    """Return the rows of `count` passages to ask of, fewer if no more are left.

    Args:
        pool: The passages.
        best: Their best spans.
        logits: Their logits by the taught vector, ``[P]``; 0 is where yes and no are as likely.
        phrase: Their cosines by the phrase alone, ``[P]``.
        known: Rows that have been asked of.
        count: How many are asked.
        rng: What draws those at random: their ranks evenly in their logarithm, so that of the best
            1, 2 to 3, 4 to 7 passages and so on as many are drawn.
        first: How many questions of the plan have been asked.
    """
    left = np.array([row for row in range(len(pool)) if row not in known], np.int64)
    by_taught = left[np.argsort(-logits[left], kind="stable")]
    near = left[np.argsort(np.abs(logits[left]), kind="stable")]
    rank = np.empty(len(pool))
    rank[by_taught] = np.arange(len(left))
    former = np.empty(len(pool))
    former[left[np.argsort(-phrase[left], kind="stable")]] = np.arange(len(left))
    looked = left[np.minimum(rank[left], former[left]) < LOOKED_AT]
    dispute = np.abs(np.log1p(rank[looked]) - np.log1p(former[looked]))
    disputed = looked[np.argsort(-dispute, kind="stable")]
    orders: dict[str, Callable[[], Iterable[int]]] = {
        "b": by_taught.tolist,
        "n": near.tolist,
        "d": disputed.tolist,
        "r": lambda: (
            by_taught[int(np.exp(rng.uniform(0, np.log(len(left)))) - 1e-9)] for _ in range(20)
        ),
    }
    chosen: list[int] = []
    spans = [
        (row, int(i), int(j)) for row, (i, j) in enumerate(zip(best.starts, best.ends, strict=True))
    ]
    vectors_asked = list(pool.vectors([spans[row] for row in known]))
    for n in range(first, first + min(count, len(left))):
        order = (*map(int, orders[PLAN[n % len(PLAN)]]()), *by_taught.tolist())
        unasked = [row for row in dict.fromkeys(order) if row not in chosen]
        row = next(
            (row for row in unasked[:LOOKED_AT] if _is_new(pool, spans[row], vectors_asked)),
            unasked[0],
        )
        chosen.append(row)
        vectors_asked += list(pool.vectors([spans[row]]))
    return chosen


def _is_new(pool: Pool, span: Span, vectors_asked: Sequence[Float32]) -> bool:
    """Tell whether no span that has been asked of says nearly the same."""
    (vector,) = pool.vectors([span])
    return not vectors_asked or float((np.array(vectors_asked) @ vector).max()) < ALIKE
