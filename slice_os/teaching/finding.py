"""Mining and searching with taught phrases: their vectors, on any backend, as phrases' are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.encoders import Encoder
from slice_os.engine import Hits
from slice_os.engine.rerank import ranked_passages
from slice_os.engine.rescore import match_of, span_text
from slice_os.errors import QueryError
from slice_os.spans import (
    EncodedQuery,
    PhraseBatch,
    SpanTables,
    Weights,
    contributions,
    degree,
    span_norms,
    spans_above,
)
from slice_os.storage.contract import Backend, MiningQuery, SearchQuery, StoredPassage
from slice_os.teaching.model import sigmoid
from slice_os.teaching.record import HALF, Prototype, TaughtPhrase
from slice_os.text.filters import Condition
from slice_os.types import Float32, Hit, Match, SpanMatch

DEPTH = 1000
SHOWN = 3
"""Spans a hit shows."""
_PLAIN = Weights(0.0, 0.0)
"""The cosine in context is the cosine."""


class _Own(NamedTuple):
    name: str
    taught: TaughtPhrase
    prototype: Prototype


def mine_taught(
    backend: Backend,
    encoder: Encoder,
    taught: Mapping[str, TaughtPhrase],
    *,
    probability: float = HALF,
    filters: Sequence[Condition] = (),
    graph: bool = False,
    on_progress: Callable[[float], object] = lambda done: None,
) -> Iterator[Match]:
    """Yield every match of taught phrases by name, passage by passage, best first in each.

    A match is a span whose probability is at least `probability`, above 0 and below 1; of those of
    one name that overlap the best stays. Its degree is that of the taught vector in context:
    nothing is encoded, for what was taught was taught so.

    Raises:
        EncoderMismatchError: a phrase was taught with another encoder.
    """
    for one in taught.values():
        one.check(encoder.info)
    owned = [_Own(name, one, own) for name, one in taught.items() for own in one.prototypes]
    owned = [one for one in owned if one.prototype.cosine(probability) <= 1]
    if not owned:
        on_progress(1.0)
        return
    least = [max(one.prototype.cosine(probability), -1.0) for one in owned]
    # Shorter ones too: a whole sentence may be one.
    batch = PhraseBatch(
        np.array([one.prototype.vector for one in owned]),
        [range(1, one.prototype.longest + 1) for one in owned],
        np.array(least, np.float32),
    )
    for stored, found in backend.scan(MiningQuery(batch, filters, graph), on_progress):
        by_name: dict[str, list[int]] = {}
        for k in found:
            by_name.setdefault(owned[k].name, []).append(k)
        tables = _tables(stored)
        for name, some in by_name.items():
            yield from _matches(name, stored, tables, [owned[k] for k in some], probability)
    on_progress(1.0)


def _tables(stored: StoredPassage) -> SpanTables:
    packed = stored.packed
    tables = SpanTables(packed, stored.passage.text)
    if not packed.norms[0].all():  # a neighbour's spans compete, too
        tables.norms = span_norms(packed.vectors, packed.max_words)
    return tables


def _matches(
    name: str,
    stored: StoredPassage,
    tables: SpanTables,
    owned: Sequence[_Own],
    probability: float,
) -> Iterator[Match]:
    prototypes = [one.prototype for one in owned]
    cosines, logits = compared(tables, prototypes)
    slope = prototypes[0].slope
    best = logits.max(axis=0)
    least = float(np.log(probability / (1 - probability)))
    # In cosines, so that a span gives way to another as elsewhere.
    for i, j, _ in spans_above(best / slope, tables.lengths, least / slope, tables.costs):
        if not stored.packed.norms[j - i - 1, i]:  # else a neighbour's
            continue
        k = int(np.argmax(logits[:, j - i - 1, i]))
        yield match_of(
            name,
            owned[k].taught.phrases[0],
            stored,
            (i, j),
            degree(float(cosines[k][j - i - 1, i])),
            float(sigmoid(best[j - i - 1, i])),
        )


def _cosines(tables: SpanTables, prototype: Prototype) -> Float32:
    none = np.zeros(0, np.int32)
    longest = min(prototype.longest, tables.packed.max_words)
    lengths = range(min(prototype.shortest, longest), longest + 1)
    question = EncodedQuery("", 0, prototype.vector, None, none, lengths, _PLAIN)
    return tables.cosines(question).context


def compared(
    tables: SpanTables, prototypes: Sequence[Prototype]
) -> tuple[Sequence[Float32], npt.NDArray[Any]]:
    """Return the cosines of a passage's spans with each prototype, ``[L, N]``, and their logits.

    The logits are ``[prototypes, L, N]``; -inf where a span is none.
    """
    cosines = [_cosines(tables, one) for one in prototypes]
    return cosines, np.array(
        [one.slope * own + one.shift for one, own in zip(prototypes, cosines, strict=True)]
    )


def search_taught(
    backend: Backend,
    encoder: Encoder,
    taught: TaughtPhrase,
    *,
    filters: Sequence[Condition] = (),
    size: int = 10,
    offset: int = 0,
    probability: float = 0.0,
) -> Hits:
    """Return the best passages for a taught phrase, by the probability of their best spans.

    Raises:
        EncoderMismatchError: it was taught with another encoder.
        QueryError: size, offset or probability is out of its range.
    """
    if size < 1 or offset < 0 or offset + size > DEPTH:
        raise QueryError(
            f"size must be at least 1, offset at least 0, and both together {DEPTH:,} at most: to "
            "find all, mine."
        )
    if not 0 <= probability <= 1:
        raise QueryError(f"{probability} is not a probability: it must be from 0 to 1.")
    taught.check(encoder.info)
    ranks = range(offset + size)
    queries = [
        SearchQuery(
            taught.phrases[0], own.vector, own.lengths, "dense", filters=filters, ranks=ranks,
            depth=DEPTH, reach=ranks.stop,
        )
        for own in taught.prototypes
    ]  # fmt: skip
    found: dict[tuple[str, int], Hit] = {}
    for passages in ranked_passages(backend, queries, ranks):
        for one in passages:
            key = one.stored.passage.document, one.stored.passage.number
            if key not in found:
                found[key] = _hit(one.stored, taught, backend)
    hits = sorted(found.values(), key=lambda hit: -hit.score)
    kept = [hit for hit in hits if (hit.probability or 0.0) >= probability]
    return Hits(kept[offset : offset + size])


def _hit(stored: StoredPassage, taught: TaughtPhrase, backend: Backend) -> Hit:
    tables = SpanTables(stored.packed, stored.passage.text)
    cosines, logits = compared(tables, taught.prototypes)
    best, slope = logits.max(axis=0), taught.prototypes[0].slope
    spans = []
    for i, j, _ in spans_above(best / slope, tables.lengths, -1e6, tables.costs)[:SHOWN]:
        k = int(np.argmax(logits[:, j - i - 1, i]))
        own = degree(float(cosines[k][j - i - 1, i]))
        scores = tables.vectors @ taught.prototypes[k].vector
        shares = contributions(scores, tables.norms, i, j)
        start, end, text = span_text(stored, i, j)
        spans.append(SpanMatch(start, end, text, own, own, tuple(shares.tolist())))
    passage = stored.passage
    probability = float(sigmoid(best.max(initial=-np.inf)))
    return Hit(
        passage.document,
        passage.number,
        passage.title,
        passage.text,
        probability,
        spans[0].degree if spans else 0.0,
        tuple(spans),
        backend.meta.stored(stored.metadata),
        passage.start,
        passage.end,
        probability,
    )
