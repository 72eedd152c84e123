"""What is asked next: some of the best, near the boundary, disputed, and at random by rank."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from slice_os.teaching.pool import Best, Pool, Span
from slice_os.types import Float32

Float64 = npt.NDArray[np.float64]
PLAN = "bnrdnbr"
"""What each question of a round is: one of the best, near to the boundary, at random, disputed."""
ALIKE = 0.95
"""Two spans of this cosine or more say nearly the same: one of them is asked."""
LOOKED_AT = 200
"""Passages of the best of which those are asked that the phrase ranks otherwise."""


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
    said = list(pool.vectors([spans[row] for row in known]))
    for n in range(first, first + min(count, len(left))):
        order = (*map(int, orders[PLAN[n % len(PLAN)]]()), *by_taught.tolist())
        unasked = [row for row in dict.fromkeys(order) if row not in chosen]
        row = next(
            (row for row in unasked[:LOOKED_AT] if _is_new(pool, spans[row], said)), unasked[0]
        )
        chosen.append(row)
        said += list(pool.vectors([spans[row]]))
    return chosen


def _is_new(pool: Pool, span: Span, said: Sequence[Float32]) -> bool:
    """Tell whether no span that has been asked of says nearly the same."""
    (vector,) = pool.vectors([span])
    return not said or float((np.array(said) @ vector).max()) < ALIKE
