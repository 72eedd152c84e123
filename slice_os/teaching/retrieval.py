"""Mining and searching with taught phrases, on any backend; files of phrases in which some are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.encoders import Encoder
from slice_os.engine import Hits
from slice_os.engine.phrases import Named, Sought, Texts
from slice_os.engine.rerank import ranked_passages
from slice_os.engine.rescore import match_of, span_text
from slice_os.errors import QueryError, TeachingError
from slice_os.options import MineOptions, TaughtSearchOptions
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
from slice_os.teaching.record import SUFFIX, Prototype, TaughtPhrase, read_taught
from slice_os.text.filters import Condition
from slice_os.types import Float32, Hit, Match, OnProgress, SpanMatch

DEPTH = 1000
SHOWN = 3
"""Spans a hit shows."""
MARK = "@"
"""What a phrase begins with that is the file of a taught one, beside the file that names it."""
_PLAIN = Weights(0.0, 0.0)
"""The cosine in context is the cosine."""


class _NamedPrototype(NamedTuple):
    """A vector of a taught phrase: what its matches are called, and the first of its phrases."""

    name: str
    phrase: str
    prototype: Prototype


def mine_taught(
    backend: Backend,
    encoder: Encoder,
    taught: Mapping[str, TaughtPhrase],
    options: MineOptions,
    *,
    filters: Sequence[Condition] = (),
    on_progress: OnProgress = lambda done: None,
) -> Iterator[Match]:
    """Yield every match of taught phrases by name, passage by passage, best first in each.

    A match is a span of at least the probability `min_probability`; of those of one name that
    overlap the best stays. Its degree is that of the taught vector in context:
    nothing is encoded, for what was taught was taught so.

    Raises:
        EncoderMismatchError: a phrase was taught with another encoder.
    """
    for phrase in taught.values():
        phrase.check(encoder.info)
    probability = options.min_probability
    owned = [
        _NamedPrototype(name, phrase.phrases[0], prototype)
        for name, phrase in taught.items()
        for prototype in phrase.prototypes
        if prototype.cosine(probability) <= 1
    ]
    if not owned:
        on_progress(1.0)
        return
    prototypes = [named.prototype for named in owned]
    least = [max(prototype.cosine(probability), -1.0) for prototype in prototypes]
    # Shorter ones too: a whole sentence may be one.
    batch = PhraseBatch(
        np.array([prototype.vector for prototype in prototypes]),
        [range(1, prototype.longest + 1) for prototype in prototypes],
        np.array(least, np.float32),
    )
    for stored, numbers in backend.scan(MiningQuery(batch, filters, options.graph), on_progress):
        by_name: dict[str, list[_NamedPrototype]] = {}
        for k in numbers:
            by_name.setdefault(owned[k].name, []).append(owned[k])
        tables = _tables(stored)
        for likely in by_name.values():
            yield from _matches(stored, tables, likely, probability)
    on_progress(1.0)


def _tables(stored: StoredPassage) -> SpanTables:
    packed = stored.packed
    tables = SpanTables(packed, stored.passage.text)
    if not packed.norms[0].all():  # a neighbour's spans compete, too
        tables.norms = span_norms(packed.vectors, packed.max_words)
    return tables


def _matches(
    stored: StoredPassage,
    tables: SpanTables,
    likely: Sequence[_NamedPrototype],
    probability: float,
) -> Iterator[Match]:
    prototypes = [named.prototype for named in likely]
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
            likely[k].name,
            likely[k].phrase,
            stored,
            (i, j),
            degree(float(cosines[k][j - i - 1, i])),
            float(sigmoid(best[j - i - 1, i])),
        )


def _cosines(tables: SpanTables, prototype: Prototype) -> Float32:
    none = np.zeros(0, np.int32)
    longest = min(prototype.longest, tables.packed.max_words)
    lengths = range(min(prototype.shortest, longest), longest + 1)
    query = EncodedQuery("", 0, prototype.vector, None, none, lengths, _PLAIN)
    return tables.cosines(query).context


def compared(
    tables: SpanTables, prototypes: Sequence[Prototype]
) -> tuple[Sequence[Float32], npt.NDArray[Any]]:
    """Return the cosines of a passage's spans with each prototype, ``[L, N]``, and their logits.

    The logits are ``[prototypes, L, N]``; -inf where a span is none.
    """
    cosines = [_cosines(tables, prototype) for prototype in prototypes]
    both = zip(prototypes, cosines, strict=True)
    return cosines, np.array(
        [prototype.slope * table + prototype.shift for prototype, table in both]
    )


def search_taught(
    backend: Backend,
    encoder: Encoder,
    taught: TaughtPhrase,
    options: TaughtSearchOptions,
    *,
    filters: Sequence[Condition] = (),
) -> Hits:
    """Return the best passages for a taught phrase, by the probability of their best spans.

    Raises:
        EncoderMismatchError: it was taught with another encoder.
        QueryError: size and offset together are more than a search looks through.
    """
    last = options.offset + options.size
    if last > DEPTH:
        raise QueryError(
            f"size and offset must be {DEPTH:,} at most, both together: to find all, mine."
        )
    taught.check(encoder.info)
    ranks = range(last)
    queries = [
        SearchQuery(
            taught.phrases[0], prototype.vector, prototype.lengths, "dense", filters=filters,
            ranks=ranks, depth=DEPTH, reach=last,
        )
        for prototype in taught.prototypes
    ]  # fmt: skip
    stored = {
        (ranked.stored.passage.document, ranked.stored.passage.number): ranked.stored
        for passages in ranked_passages(backend, queries, ranks)
        for ranked in passages
    }
    hits = [_hit(passage, taught, backend) for passage in stored.values()]
    likely = [hit for hit in hits if (hit.probability or 0.0) >= options.min_probability]
    return Hits(sorted(likely, key=lambda hit: -hit.score)[options.offset : last])


def _hit(stored: StoredPassage, taught: TaughtPhrase, backend: Backend) -> Hit:
    tables = SpanTables(stored.packed, stored.passage.text)
    cosines, logits = compared(tables, taught.prototypes)
    best, slope = logits.max(axis=0), taught.prototypes[0].slope
    spans = []
    for i, j, _ in spans_above(best / slope, tables.lengths, -1e6, tables.costs)[:SHOWN]:
        k = int(np.argmax(logits[:, j - i - 1, i]))
        in_context = degree(float(cosines[k][j - i - 1, i]))
        scores = tables.vectors @ taught.prototypes[k].vector
        shares = contributions(scores, tables.norms, i, j)
        start, end, text = span_text(stored, i, j)
        match = SpanMatch(start, end, text, in_context, in_context, tuple(shares.tolist()))
        spans.append(match)
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


def read_mixed(
    file: Path, read: Callable[[Path], dict[str, Sought]]
) -> tuple[dict[str, Sought], dict[str, TaughtPhrase]]:
    """Return the phrases of a file by name, and the taught ones: of a .json that one.

    Raises:
        TeachingError: A taught phrase cannot be read, or has other phrases beside it.
        CorpusError: The file cannot be read, as `read` says.
    """
    if file.suffix.lower() == SUFFIX:
        taught = read_taught(file)
        return {}, {taught.name: taught}
    plain: dict[str, Sought] = {}
    taught_by_name: dict[str, TaughtPhrase] = {}
    for name, sought in read(file).items():
        marked = [phrase for phrase in sought.phrases if phrase.startswith(MARK)]
        if not marked:
            plain[name] = sought
            continue
        if len(sought.phrases) > 1 or sought.counter_examples:
            raise TeachingError(
                f"{name!r} in {file} has a taught phrase and others: give them names of their own."
            )
        taught = read_taught(file.parent / marked[0][len(MARK) :])
        add_taught(taught_by_name, {taught.name if name == marked[0] else name: taught})
    return plain, taught_by_name


def add_taught(to: dict[str, TaughtPhrase], more: Mapping[str, TaughtPhrase]) -> None:
    """Add taught phrases by name; TeachingError if two have one, as matches are told by it."""
    for name, taught in more.items():
        if name in to:
            raise TeachingError(
                f"Two taught phrases are called {name!r}: give one another name, with 'slice-os "
                f"teach --from {taught.file} --name NAME', or in a phrases file."
            )
        to[name] = taught


def without_taught(
    phrases: str | Named | TaughtPhrase | Mapping[str, Texts | Sought | TaughtPhrase],
) -> tuple[str | Named, dict[str, TaughtPhrase]]:
    """Return phrases without those that were taught, and these by name."""
    if isinstance(phrases, TaughtPhrase):
        return {}, {phrases.name: phrases}
    if not isinstance(phrases, Mapping):
        return phrases, {}
    taught = {name: phrase for name, phrase in phrases.items() if isinstance(phrase, TaughtPhrase)}
    rest = {name: text for name, text in phrases.items() if not isinstance(text, TaughtPhrase)}
    return rest, taught


def one_after_the_other(first: Iterator[Match], second: Iterator[Match]) -> Iterator[Match]:
    """Yield the matches of two; closing it closes the one that is under way."""
    yield from first
    yield from second
