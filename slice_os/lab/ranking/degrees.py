"""Relevant texts among more and more others: van Belle's documents of degree k.

Van Belle (2020), Length-agnostic document retrieval using sentence-level embeddings: the documents
are those of section 3.2, the measure that of section 6. A method that looks at length alone ranks
the types of document apart; one that looks at what is relevant ranks them alike, and above the
irrelevant ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

import numpy as np

from slice_os.errors import EvaluationError
from slice_os.lab.ranking.baselines import BM25
from slice_os.lab.ranking.ranker import cut_sentences, evened
from slice_os.types import Float32

RELEVANT, IRRELEVANT = "relevant", "irrelevant"
DEGREES = ((2, False), (3, False), (4, False), (8, False), (4, True), (8, True))
"""The published degrees, and whether the relevant text is split."""
TYPES = tuple(f"degree {k}{', split' if split else ''}" for k, split in DEGREES)


@dataclass(frozen=True, slots=True)
class DegreeCase:
    """A query and documents to rank for it.

    Attributes:
        query: The query.
        documents: Sentences by id, which is the collection's for what was not made.
        types: By the same ids, in the same order: `RELEVANT`, `IRRELEVANT` or one of `TYPES`.
    """

    query: str
    documents: Mapping[str, tuple[str, ...]]
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DegreeReport:
    """The mean reciprocal rank of the documents of each type, from 0 to 1."""

    mrr: Mapping[str, float]

    @property
    def relevance(self) -> float:
        """The relevant texts' less the irrelevant ones': more is better."""
        return self.mrr[RELEVANT] - self.mrr[IRRELEVANT]

    @property
    def length(self) -> float:
        """The relevant texts' less the mean of the degrees': 0 is blind to length."""
        return self.mrr[RELEVANT] - fmean(self.mrr[one] for one in TYPES)


def degree_set(
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    *,
    relevant: int = 1,
    per_query: int = 1,
    irrelevant: int = 15,
    copies: int = 4,
    language: str = "en",
    seed: int = 0,
) -> list[DegreeCase]:
    """Make documents of known degree of a judged collection; the same arguments make the same.

    A case has a relevant text, irrelevant ones, and `copies` documents of each degree k: the
    relevant text and k - 1 of the irrelevant ones, in random order; split, the relevant text is cut
    between two sentences, and at least one of the others stands between its parts.

    Args:
        queries: Texts by id.
        documents: Texts by id.
        qrels: Query -> document -> grade.
        relevant: The least grade of a relevant text.
        per_query: Cases of a query, each with another relevant text of two sentences or more.
        irrelevant: Irrelevant texts of a case: judged lower, or where too few are, those that BM25
            ranks highest of what was not judged relevant.
        copies: Documents of each degree.
        language: The language whose rules cut texts into sentences.
        seed: Of what is drawn.

    Raises:
        EvaluationError: A degree needs more irrelevant texts, or the collection makes no case.
        MissingExtraError: It needs the extra ``ranking``.
    """
    most = max(k for k, _ in DEGREES)
    if irrelevant < most - 1:
        raise EvaluationError(f"Degree {most} needs {most - 1} irrelevant texts: give as many.")
    rng = np.random.default_rng(seed)
    names = list(documents)
    index = BM25(list(documents.values()))
    cases = []
    for name, query in queries.items():
        grades = qrels.get(name, {})
        good = [one for one, grade in grades.items() if grade >= relevant and one in documents]
        others = [one for one, grade in grades.items() if grade < relevant and one in documents]
        others = [others[k] for k in rng.permutation(len(others))[:irrelevant].tolist()]
        taken = {*good, *others}
        best = (names[k] for k in np.argsort(-index.scores(query), kind="stable").tolist())
        while len(others) < irrelevant and (found := next(best, None)) is not None:
            if found not in taken:
                others.append(found)
        cut = {one: tuple(cut_sentences(documents[one], language)) for one in others}
        if len(others) < irrelevant or not all(cut.values()):
            continue
        drawn = 0
        for one in (good[k] for k in rng.permutation(len(good)).tolist()):
            own = tuple(cut_sentences(documents[one], language))
            if len(own) > 1 and drawn < per_query:
                drawn += 1
                cases.append(_case(query, (one, own), cut, copies, rng))
    if not cases:
        raise EvaluationError(
            f"No query has a relevant text of two sentences and {irrelevant} irrelevant ones: give "
            "a larger collection."
        )
    return cases


def _case(
    query: str,
    relevant: tuple[str, tuple[str, ...]],
    irrelevant: Mapping[str, tuple[str, ...]],
    copies: int,
    rng: np.random.Generator,
) -> DegreeCase:
    name, text = relevant
    documents = {name: text, **irrelevant}
    types = {name: RELEVANT, **dict.fromkeys(irrelevant, IRRELEVANT)}
    others = list(irrelevant.values())
    for (degree, split), kind in zip(DEGREES, TYPES, strict=True):
        for copy in range(copies):
            made = [others[k] for k in rng.choice(len(others), degree - 1, replace=False)]
            middle = int(rng.integers(1, len(text))) if split else len(text)
            own = [part for part in (text[:middle], text[middle:]) if part]
            # Each part goes before another of the other texts, or after the last.
            places = np.sort(rng.choice(degree, len(own), replace=False)).tolist()
            for place, part in zip(reversed(places), reversed(own), strict=True):
                made.insert(place, part)
            documents[f"{kind}, {copy}"] = tuple(chain.from_iterable(made))
            types[f"{kind}, {copy}"] = kind
    return DegreeCase(query, documents, types)


def measure_degrees(
    cases: Sequence[DegreeCase], score: Callable[[DegreeCase], Float32]
) -> DegreeReport:
    """Rank the documents of each case by `score`, which gives one for each, and report the MRR."""
    found = [reciprocal_ranks(score(case), list(case.types.values())) for case in cases]
    return DegreeReport({kind: fmean(one[kind] for one in found) for kind in found[0]})


def reciprocal_ranks(scores: Float32, types: Sequence[str]) -> dict[str, float]:
    """Return the mean of 1 / rank of each type's documents; equal ones share their ranks.

    That is what shuffling documents of equal scores gives in the mean: in the order of their
    numbers, a method that tells none apart would look perfect.
    """
    even = evened(scores)
    order = np.argsort(-even, kind="stable")
    _, group, sizes = np.unique(-even[order], return_inverse=True, return_counts=True)
    means = np.bincount(group, 1 / np.arange(1, len(order) + 1)) / sizes
    of_each = np.empty(len(order))
    of_each[order] = means[group]
    kinds = np.array(types)
    return {kind: float(of_each[kinds == kind].mean()) for kind in dict.fromkeys(types)}
