"""Mining with any backend, in context or verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from slice_os.backends.base import Backend, MiningQuery, StoredPassage
from slice_os.encoder import Encoder
from slice_os.encoder.judge import Judge
from slice_os.errors import QueryError
from slice_os.filters import Condition
from slice_os.lexical import parse_query
from slice_os.mining.passages import Passage, Phrase, Span, indexed
from slice_os.mining.verify import VERIFY_MARGIN, apart, case_of, judged, verified
from slice_os.phrases import Sought
from slice_os.records import Match
from slice_os.search import encode_queries, query_lengths, span_text
from slice_os.spans import cosine, degree

BATCH = 256
"""Passages whose spans are verified at once: few, so that Ctrl-C loses little."""


def mine_phrases(
    backend: Backend,
    encoder: Encoder,
    sought: Mapping[str, Sought],
    *,
    threshold: float = 0.8,
    literal: bool = False,
    filters: Sequence[Condition] = (),
    all_lengths: bool = False,
    verify: bool = False,
    judge: Judge | None = None,
    exact: bool = False,
    on_progress: Callable[[float], object] = lambda done: None,
    on_unknown: Callable[[str], object] = lambda name: None,
) -> Iterator[Match]:
    """Yield every match of what is sought, by name, passage by passage, best first in each.

    A match is a span whose indexed degree with one of a name's phrases is at least `threshold`; of
    those of one name that overlap only the best stays, of which phrase it may be. Where a
    counter-example of the name is nearer to a span than the phrases are, neither that span nor one
    that overlaps it is a match. With `verify` the verified degree decides: of each passage the best
    32 spans whose indexed degree comes within 0.1 of the threshold are encoded alone, which finds
    phrases that their context has drawn away from themselves, and drops those it has drawn near.
    With a `judge` too, those that may reach the threshold are read by it, and its word decides.
    `exact` has a cluster read every word instead of asking its graph, which may miss some matches;
    an embedded index does so anyway. A phrase may say which words have to stand in the passage and
    which must not (`slice_os.lexical.parse_query`), unless it is `literal`; counter-examples are
    taken as they are. `on_progress` is told what share of the work is done, `on_unknown` each
    phrase and counter-example of which the encoder knows no word: it is left out.

    Raises:
        QueryError: a phrase is empty, all are unknown, or the threshold is not in [0, 1].
    """
    if not 0 <= threshold <= 1:
        raise QueryError(f"The threshold {threshold} is not a degree: it must be from 0 to 1.")
    sought = _known(sought, encoder, literal, on_unknown)
    names = list(sought)
    typed = [(n, text) for n, name in enumerate(names) for text in sought[name].phrases]
    queries = [parse_query(text, literal=literal) for _, text in typed]
    against = [text for name in names for text in sought[name].counter_examples]
    vectors = encode_queries(encoder, [query.text for query in queries] + against)
    phrases = [
        Phrase(text, query, vector, query_lengths(query.text, backend.meta.max_words, all_lengths))
        for (_, text), query, vector in zip(typed, queries, vectors[: len(queries)], strict=True)
    ]
    counters = np.split(
        vectors[len(phrases) :],
        np.cumsum([len(sought[name].counter_examples) for name in names])[:-1],
    )
    judge = judge if verify else None
    least = judge.least(threshold) if judge else threshold
    reach = cosine(min(max(least - VERIFY_MARGIN, 0), 1)) if verify else cosine(threshold)
    asked = MiningQuery(
        vectors[: len(phrases)],
        # Shorter ones too: a whole sentence may be one.
        [range(1, phrase.lengths.stop) for phrase in phrases],
        np.full(len(phrases), reach, dtype=np.float32),
        filters,
        exact,
    )

    def near() -> Iterator[tuple[Passage, int, list[Phrase]]]:
        for stored, found in backend.scan(asked, on_progress):
            words = stored.passage.title, stored.passage.text
            by_name: dict[int, list[Phrase]] = {}
            for k in found:
                if all(one.holds(*words) for one in phrases[k].query.wording):
                    by_name.setdefault(typed[k][0], []).append(phrases[k])
            if by_name:
                passage = Passage.of(stored)
                yield from ((passage, n, some) for n, some in by_name.items())

    def matches(
        stored: StoredPassage, n: int, some: Sequence[Phrase], spans: Sequence[Span]
    ) -> Iterator[Match]:
        for span in spans:
            if stored.packed.norms[span.j - span.i - 1, span.i]:  # else a neighbour's match
                yield _match(names[n], some[span.phrase].typed, stored, span)

    if verify:
        cases = (case_of(passage, n, some, counters[n], least) for passage, n, some in near())
        while batch := list(islice(cases, BATCH)):
            found = verified(batch, counters, least, encoder)
            kept = [apart(case, spans, least) for case, spans in zip(batch, found, strict=True)]
            if judge:
                kept = judged(batch, kept, judge, threshold)
            for case, spans in zip(batch, kept, strict=True):
                yield from matches(case.stored, case.name, case.phrases, spans)
    else:
        for passage, n, some in near():
            spans = indexed(passage, some, counters[n], cosine(threshold))
            yield from matches(passage.stored, n, some, spans)
    on_progress(1.0)


def _known(
    sought: Mapping[str, Sought],
    encoder: Encoder,
    literal: bool,
    on_unknown: Callable[[str], object],
) -> dict[str, Sought]:
    """Return what is sought without the texts that the encoder does not know."""

    def kept(texts: Sequence[str], literal: bool) -> tuple[str, ...]:
        queries = {text: parse_query(text, literal=literal).text for text in texts}
        unknown = [text for text, q in queries.items() if q.strip() and not encoder.knows(q)]
        for text in unknown:
            on_unknown(text)
        return tuple(text for text in texts if text not in unknown)

    known = {
        name: Sought(kept(one.phrases, literal), kept(one.counter_examples, True))
        for name, one in sought.items()
    }
    if sought and not any(one.phrases for one in known.values()):
        first, *others = (text for one in sought.values() for text in one.phrases)
        raise QueryError(
            f"The phrase {first[:60]!r} holds no word that the encoder knows"
            f"{', nor do the others' if others else ''}: mine with an encoder of their language, "
            "and an index made by it."
        )
    return {name: one for name, one in known.items() if one.phrases}


def _match(name: str, phrase: str, stored: StoredPassage, span: Span) -> Match:
    start, end, text = span_text(stored, span.i, span.j)
    passage = stored.passage
    return Match(
        name,
        phrase,
        passage.document,
        passage.number,
        start,
        end,
        text,
        degree(span.cosine),
        passage.start + start,
        passage.start + end,
    )
