"""Making test collections from sentence pairs of known similarity.

A query and its one relevant document share the meaning of so many sentences, in the same order:
each is one sentence of a pair that people found alike, the document's the other. The rest of both
says something else. Split, the shared sentences stand apart, at least one other sentence between
any two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import regex

from slice_os.errors import EvaluationError, needs

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
    asked: dict[str, tuple[str, ...]] = {}
    # Numbers in random order, since equal scores are ranked by id.
    names = [f"d{number}" for number in rng.permutation(count + distractors)]
    texts: list[tuple[str, ...]] = []
    for number in range(count):
        said = same[number * shared : (number + 1) * shared]
        kin = list(chain.from_iterable(said))
        asked[f"q{number}"] = _mixed(
            [first for first, _ in said], ours, query_fillers, kin, split, rng
        )
        texts.append(
            _mixed([second for _, second in said], theirs, document_fillers, kin, split, rng)
        )
    low, high = document_fillers
    for _ in range(distractors):
        # As long as a relevant document, or length alone would tell them apart.
        least = max(low, shared - 1) if split else low
        texts.append(_drawn(theirs, least + shared, max(high, least) + shared, [], rng))
    documents = dict(sorted(zip(names, texts, strict=True)))
    qrels = {query: {names[number]: 1} for number, query in enumerate(asked)}
    return SharedSentenceSet(asked, documents, qrels)


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
    # Each shared sentence goes before another filler, or after the last.
    places = np.sort(rng.choice(len(fillers) + 1, len(shared), replace=False)).tolist()
    mixed = list(fillers)
    for place, sentence in zip(reversed(places), reversed(shared), strict=True):
        mixed.insert(place, sentence)
    return tuple(mixed)


def _drawn(
    pool: Sequence[str], least: int, most: int, kin: Sequence[str], rng: np.random.Generator
) -> tuple[str, ...]:
    """Return `least` to `most` sentences of the pool, none like one of `kin`."""
    count = int(rng.integers(least, most + 1))
    known = [_words(text) for text in kin]
    found: list[str] = []
    for k in rng.permutation(len(pool)).tolist():
        if len(found) == count:
            break
        words = _words(pool[k])
        if all(2 * len(words & other) <= len(words) for other in known):
            found.append(pool[k])
    if len(found) < count:
        raise EvaluationError(
            f"{count} sentences are needed that say something else, the pairs hold {len(found)}: "
            "give more pairs of a low score."
        )
    return tuple(found)


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text.lower()))


def _key(text: str) -> str:
    return " ".join(_WORDS.findall(text.lower()))
