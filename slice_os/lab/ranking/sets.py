"""Test sets whose relevance is known by construction.

Of sentence pairs: a query and its one relevant document share the meaning of so many sentences, in
the same order, and the rest of both says something else. Of a judged collection: van Belle's
documents of degree k (2020, sections 3.2 and 6), relevant texts among more and more others. A
method that looks at length alone ranks the types of document apart; one that looks at what is
relevant ranks them alike, and above the irrelevant ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import TypeVar

import numpy as np
import regex

from slice_os.errors import EvaluationError, needs
from slice_os.lab.ranking.baselines import BM25
from slice_os.lab.ranking.ranker import Text, cut_sentences, evened
from slice_os.types import Float32

T = TypeVar("T")
_WORDS = regex.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class SharedSentenceSet:
    """Queries and documents by id, as their sentences, and ``qrels[query][document] = 1``."""

    queries: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, tuple[str, ...]]
    qrels: Mapping[str, Mapping[str, int]]


def shared_sentence_set(
    pairs: Iterable[tuple[str, str, float]],
    shared: int,
    *,
    split: bool = False,
    queries: int = 50,
    distractors: int = 200,
    query_fillers: tuple[int, int] = (2, 6),
    document_fillers: tuple[int, int] = (4, 24),
    alike: float = 4.0,
    seed: int = 0,
) -> SharedSentenceSet:
    """Make a set whose texts share `shared` sentences; the same arguments make the same set.

    Args:
        pairs: First sentence, second sentence, score.
        shared: How many sentences' meaning a query and its document share.
        split: Keep the shared sentences apart from each other, on both sides.
        queries: How many queries at most; each uses up `shared` pairs.
        distractors: Documents that answer no query, besides the other queries' documents.
        query_fillers: How many other sentences a query has, from and to; split: at least
            ``shared - 1``.
        document_fillers: The same of a document.
        alike: The least score of a pair that says the same. Pairs below it give the fillers: no
            sentence is a filler of queries and of documents, and none that shares more than half of
            its words with a shared sentence stands beside it.
        seed: Of what is drawn.

    Raises:
        EvaluationError: The pairs do not suffice, or `shared` is below 1.
    """
    if shared < 1:
        raise EvaluationError(f"Texts cannot share {shared} sentences: use 1 or more.")
    rng = np.random.default_rng(seed)
    same, ours, theirs = _parts(pairs, alike, rng)
    count = min(queries, len(same) // shared)
    if count < 1:
        raise EvaluationError(
            f"{len(same)} pairs score {alike} or more, a query needs {shared}: "
            "give more pairs, or lower `alike`."
        )
    query_texts: dict[str, tuple[str, ...]] = {}
    # Numbers in random order, since equal scores are ranked by id.
    names = [f"d{number}" for number in rng.permutation(count + distractors)]
    texts: list[tuple[str, ...]] = []
    for number in range(count):
        pairs_of_query = same[number * shared : (number + 1) * shared]
        kin = list(chain.from_iterable(pairs_of_query))
        query_texts[f"q{number}"] = _mixed(
            [first for first, _ in pairs_of_query], ours, query_fillers, kin, split, rng
        )
        texts.append(
            _mixed(
                [second for _, second in pairs_of_query], theirs, document_fillers, kin, split, rng
            )
        )
    low, high = document_fillers
    for _ in range(distractors):
        # As long as a relevant document, or length alone would tell them apart.
        least = max(low, shared - 1) if split else low
        texts.append(_drawn(theirs, least + shared, max(high, least) + shared, [], rng))
    documents = dict(sorted(zip(names, texts, strict=True)))
    qrels = {query: {names[number]: 1} for number, query in enumerate(query_texts)}
    return SharedSentenceSet(query_texts, documents, qrels)


def mean_reciprocal_rank(
    rankings: Mapping[str, Mapping[str, float]], qrels: Mapping[str, Mapping[str, int]]
) -> float:
    """Return the MRR of rankings, query -> document -> score, as ir_measures computes it.

    Raises:
        MissingExtraError: It needs the extra ``evaluate``.
    """
    with needs("Measuring a ranking", "evaluate"):
        import ir_measures
    measure = ir_measures.RR
    return float(ir_measures.calc_aggregate([measure], qrels, rankings)[measure])


def _parts(
    pairs: Iterable[tuple[str, str, float]], alike: float, rng: np.random.Generator
) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Return pairs that say the same, fillers of queries and of documents; no sentence twice."""
    same: list[tuple[str, str]] = []
    fillers: tuple[dict[str, str], dict[str, str]] = ({}, {})
    given = [(first.strip(), second.strip(), score) for first, second, score in pairs]
    taken: set[str] = set()
    for k in rng.permutation(len(given)).tolist():
        first, second, score = given[k]
        keys = {_key(first), _key(second)}
        if score >= alike and len(keys) == 2 and "" not in keys and not keys & taken:
            same.append((first, second))
            taken |= keys
    for k, (first, second, score) in enumerate(given):
        if score < alike:
            # Both of a pair on one side, whatever they have in common.
            fillers[k % 2].update({_key(text): text for text in (first, second)})
    ours, theirs = ({k: v for k, v in side.items() if k and k not in taken} for side in fillers)
    return same, list(ours.values()), [text for key, text in theirs.items() if key not in ours]


def _mixed(
    shared: Sequence[str],
    pool: Sequence[str],
    between: tuple[int, int],
    kin: Sequence[str],
    split: bool,
    rng: np.random.Generator,
) -> tuple[str, ...]:
    """Return the shared sentences in their order among fillers, in a run or each apart."""
    least = max(between[0], len(shared) - 1) if split else between[0]
    fillers = _drawn(pool, least, max(between[1], least), kin, rng)
    if not split:
        at = int(rng.integers(len(fillers) + 1))
        return (*fillers[:at], *shared, *fillers[at:])
    return tuple(_inserted(fillers, shared, rng))


def _inserted(texts: Sequence[T], parts: Sequence[T], rng: np.random.Generator) -> list[T]:
    """Return `texts` with `parts` in their order, each before another text or after the last."""
    places = np.sort(rng.choice(len(texts) + 1, len(parts), replace=False)).tolist()
    mixed = list(texts)
    for place, part in zip(reversed(places), reversed(parts), strict=True):
        mixed.insert(place, part)
    return mixed


def _drawn(
    pool: Sequence[str], least: int, most: int, kin: Sequence[str], rng: np.random.Generator
) -> tuple[str, ...]:
    """Return `least` to `most` sentences of the pool, none like one of `kin`."""
    count = int(rng.integers(least, most + 1))
    known = [_words(text) for text in kin]
    drawn: list[str] = []
    for k in rng.permutation(len(pool)).tolist():
        if len(drawn) == count:
            break
        words = _words(pool[k])
        if all(2 * len(words & other) <= len(words) for other in known):
            drawn.append(pool[k])
    if len(drawn) < count:
        raise EvaluationError(
            f"{count} sentences are needed that say something else, the pairs hold {len(drawn)}: "
            "give more pairs of a low score."
        )
    return tuple(drawn)


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text.lower()))


def _key(text: str) -> str:
    return " ".join(_WORDS.findall(text.lower()))


RELEVANT, IRRELEVANT = "relevant", "irrelevant"
DEGREES = ((2, False), (3, False), (4, False), (8, False), (4, True), (8, True))
"""The published degrees, and whether the relevant text is split."""
TYPES = tuple(f"degree {k}{', split' if split else ''}" for k, split in DEGREES)


@dataclass(frozen=True, slots=True)
class DegreeCase:
    """A query and documents to rank for it.

    Attributes:
        query: The query's sentences.
        documents: Sentences by id, which is the collection's for what was not made.
        types: By the same ids, in the same order: `RELEVANT`, `IRRELEVANT` or one of `TYPES`.
    """

    query: tuple[str, ...]
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
        return self.mrr[RELEVANT] - fmean(self.mrr[kind] for kind in TYPES)


def degree_set(
    queries: Mapping[str, Text],
    documents: Mapping[str, Text],
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
        queries: By id; a string is one sentence.
        documents: By id, texts or their sentences.
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
    index = BM25([_joined(text) for text in documents.values()])
    cases = []
    for name, query in queries.items():
        grades = qrels.get(name, {})
        good = [
            text_id
            for text_id, grade in grades.items()
            if grade >= relevant and text_id in documents
        ]
        others = [
            text_id
            for text_id, grade in grades.items()
            if grade < relevant and text_id in documents
        ]
        others = [others[k] for k in rng.permutation(len(others))[:irrelevant].tolist()]
        taken = {*good, *others}
        best = (names[k] for k in np.argsort(-index.scores(_joined(query)), kind="stable").tolist())
        while len(others) < irrelevant and (found := next(best, None)) is not None:
            if found not in taken:
                others.append(found)
        cut = {text_id: _cut(documents[text_id], language) for text_id in others}
        if len(others) < irrelevant or not all(cut.values()):
            continue
        drawn = 0
        for text_id in (good[k] for k in rng.permutation(len(good)).tolist()):
            own = _cut(documents[text_id], language)
            if len(own) > 1 and drawn < per_query:
                drawn += 1
                asked = (query,) if isinstance(query, str) else tuple(query)
                cases.append(_case(asked, (text_id, own), cut, copies, rng))
    if not cases:
        raise EvaluationError(
            f"No query has a relevant text of two sentences and {irrelevant} irrelevant ones: give "
            "a larger collection."
        )
    return cases


def _joined(text: Text) -> str:
    return text if isinstance(text, str) else " ".join(text)


def _cut(text: Text, language: str) -> tuple[str, ...]:
    return tuple(cut_sentences(text, language) if isinstance(text, str) else text)


def _case(
    query: tuple[str, ...],
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
            parts = _inserted(made, own, rng)
            documents[f"{kind}, {copy}"] = tuple(chain.from_iterable(parts))
            types[f"{kind}, {copy}"] = kind
    return DegreeCase(query, documents, types)


def measure_degrees(
    cases: Sequence[DegreeCase], score: Callable[[DegreeCase], Float32]
) -> DegreeReport:
    """Rank the documents of each case by `score`, which gives one for each, and report the MRR."""
    ranks = [reciprocal_ranks(score(case), list(case.types.values())) for case in cases]
    return DegreeReport({kind: fmean(of_case[kind] for of_case in ranks) for kind in ranks[0]})


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
