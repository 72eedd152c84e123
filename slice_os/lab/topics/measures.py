"""Measures of topics: against labels, by co-occurrence, and stand-ins for what people are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.types import Float32

Ints = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Likeness = Callable[[Sequence[str]], npt.NDArray[Any]]
"""Gives how alike each of some items is to each, ``[n, n]``."""

SHOWN = 5
"""Items of a topic among which an intruder is sought (Chang et al., 2009)."""
DESCRIBED = 10
"""Items of a topic that count in NPMI and in what a passage is compared with."""
KNOWN = 50
"""An intruder is none of this many items nearest to the topic."""
DRAWS = 10
"""Intruders tried for each topic."""


def nmi(topics: Ints, labels: Ints) -> float:
    """Return the normalised mutual information 2 I(T; L) / (H(T) + H(L)), 0 to 1.

    Args:
        topics: int ``[n]``, the topic of each document.
        labels: int ``[n]``, its label.
    """
    joint = _joint(topics, labels)
    joint /= joint.sum()
    by_topic, by_label = joint.sum(axis=1), joint.sum(axis=0)
    both = joint > 0
    shared = float((joint[both] * np.log(joint[both] / np.outer(by_topic, by_label)[both])).sum())
    entropies = _entropy(by_topic) + _entropy(by_label)
    return 2 * shared / entropies if entropies else 1.0


def purity(topics: Ints, labels: Ints) -> float:
    """Return the share of documents whose label is the most frequent one of their topic."""
    joint = _joint(topics, labels)
    return float(joint.max(axis=1).sum() / joint.sum())


def _joint(topics: Ints, labels: Ints) -> Floats:
    joint = np.zeros((int(topics.max()) + 1, int(labels.max()) + 1))
    np.add.at(joint, (topics, labels), 1)
    return joint


def _entropy(shares: Floats) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


def cooccurrence(held: Mapping[str, Ints], count: int) -> Likeness:
    """Return a function that gives the NPMI of items with each other.

    Bouma (2009): ln(p(a, b) / (p(a) p(b))) / -ln p(a, b), -1 where no text holds both, 1 where none
    holds one of them alone.

    Args:
        held: For each item the rows of the texts that hold it.
        count: How many texts there are.
    """
    sets = {item: frozenset(rows.tolist()) for item, rows in held.items()}

    def npmi(items: Sequence[str]) -> Floats:
        found = np.full((len(items), len(items)), -1.0)
        for a, one in enumerate(items):
            for b, other in enumerate(items[:a]):
                both = len(sets[one] & sets[other]) / count
                if both == 1:
                    found[a, b] = 1
                elif both:
                    apart = len(sets[one]) * len(sets[other]) / count**2
                    found[a, b] = np.log(both / apart) / -np.log(both)
                found[b, a] = found[a, b]
        return found

    return npmi


def coherence(described: Sequence[Sequence[str]], likeness: Likeness) -> float:
    """Return the mean likeness of two of a topic's items, over all pairs and topics."""
    pairs = [np.triu_indices(len(items), 1) for items in described]
    means = [
        likeness(items)[rows].mean()
        for items, rows in zip(described, pairs, strict=True)
        if len(items) > 1
    ]
    return float(np.mean(means))


def intrusion(described: Sequence[Sequence[str]], likeness: Likeness, seed: int) -> float:
    """Return how often an intruder among six items is the one least like the others.

    As people are asked in Wang et al. (2021), section 6.2.1: five of a topic's first items, and one
    of another topic's that is none of its first 50. Here the rater is a measure of likeness.

    Args:
        described: The first items of each topic, best first.
        likeness: What rates.
        seed: Of the intruders.
    """
    rng = np.random.default_rng(seed)
    right = asked = 0
    for k, items in enumerate(described):
        known = set(items[:KNOWN])
        others = [one for j, more in enumerate(described) if j != k for one in more[:SHOWN]]
        strangers = sorted(set(others) - known)
        if not strangers or len(items) < SHOWN:
            continue
        for stranger in rng.choice(strangers, DRAWS).tolist():
            found = likeness([*items[:SHOWN], stranger]).astype(np.float64)
            np.fill_diagonal(found, 0)
            right += int(found.sum(axis=1).argmin()) == SHOWN
            asked += 1
    return right / asked if asked else float("nan")


def relatedness(passages: Float32, topics: Ints, described: Float32, seed: int) -> float:
    """Return how often a passage is nearer to its topic's items than to another topic's.

    As people are asked in Wang et al. (2021), section 6.2.1: which of two topics, the passage's
    most probable one and a random other one, goes with it. Here a rater's vectors answer.

    Args:
        passages: float32 ``[n, d]``, the passages' unit vectors by the rater.
        topics: int ``[n]``, the topic of each.
        described: float32 ``[K, d]``, the sum of each topic's items' unit vectors.
        seed: Of the other topics.
    """
    count = len(described)
    shift = np.random.default_rng(seed).integers(1, count, len(passages))
    scores = passages @ described.T
    rows = np.arange(len(passages))
    return float((scores[rows, topics] > scores[rows, (topics + shift) % count]).mean())
