"""Mining: every span of the index that says one of the phrases, exhaustively and exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from slice_os.backends.base import Backend, StoredPassage
from slice_os.corpus.encoding import BROKEN, open_text
from slice_os.corpus.formats.delimited import parse_csv
from slice_os.encoder import Encoder
from slice_os.errors import CorpusError, QueryError
from slice_os.explaining import span_text
from slice_os.filters import Condition
from slice_os.lexical import parse_query
from slice_os.records import Float32, Match
from slice_os.retrieval import ROUNDING, encode_queries, query_lengths
from slice_os.spans import (
    ScoredSpan,
    cosine,
    degree,
    fit_window,
    span_cosines,
    spans_above,
    top_spans,
    word_scores,
)

VERIFY_MARGIN = 0.1
"""How far below the threshold an indexed degree may be for its span to be verified."""
VERIFIED_SPANS = 32


def mine_phrases(
    backend: Backend,
    encoder: Encoder,
    phrases: Mapping[str, str],
    *,
    threshold: float = 0.8,
    literal: bool = False,
    filters: Sequence[Condition] = (),
    all_lengths: bool = False,
    verify: bool = False,
    exact: bool = False,
    on_progress: Callable[[float], object] = lambda done: None,
) -> Iterator[Match]:
    """Yield every match of the phrases (name -> text), passage by passage, best first in each.

    A match is a span whose indexed degree is at least `threshold`; of those of one phrase that
    overlap only the best stays. With `verify` the verified degree decides: of each passage the
    best 32 spans whose indexed degree comes within 0.1 of the threshold are encoded alone, which
    finds phrases that their context has drawn away from themselves, and drops those it has drawn
    near. `exact` has a cluster read every word instead of asking its graph, which may miss some
    matches; an embedded index does so anyway. A phrase may say which words have to stand in the
    passage and which must not (`slice_os.lexical.parse_query`), unless it is `literal`.
    `on_progress` is told what share of the work is done.

    Raises:
        QueryError: a phrase holds no word, or the threshold is not in [0, 1].
    """
    if not 0 <= threshold <= 1:
        raise QueryError(f"The threshold {threshold} is not a degree: it must be from 0 to 1.")
    queries = [parse_query(text, literal=literal) for text in phrases.values()]
    names, texts = list(phrases), [query.text for query in queries]
    vectors = encode_queries(encoder, texts)
    lengths = [query_lengths(text, backend.meta.max_words, all_lengths) for text in texts]
    least = cosine(threshold)
    reach = cosine(max(threshold - VERIFY_MARGIN, 0)) if verify else least
    cosines = np.full(len(names), reach, dtype=np.float32)
    for stored, found in backend.scan(vectors, lengths, cosines, filters, on_progress, exact):
        words = stored.passage.title, stored.passage.text
        for k in found:
            if not all(one.holds(*words) for one in queries[k].wording):
                continue
            if verify:
                matches = _verified(stored, vectors[k], lengths[k], threshold, encoder)
            else:
                matches = spans_above(*_table(stored, vectors[k], lengths[k]), least)
            for span in matches:
                yield _match(names[k], stored, span)
    on_progress(1.0)


def _table(stored: StoredPassage, vector: Float32, lengths: range) -> tuple[Float32, range]:
    scores = word_scores(stored.words.vectors, vector)
    window = fit_window(lengths, len(scores))
    return span_cosines(scores, stored.norms, window), window


def _verified(
    stored: StoredPassage, vector: Float32, lengths: range, threshold: float, encoder: Encoder
) -> list[ScoredSpan]:
    """Return the spans whose verified degree is enough, best first, none overlapping."""
    cosines, window = _table(stored, vector, lengths)
    spans = [
        span
        for span in top_spans(cosines, window, VERIFIED_SPANS)
        if degree(span.cosine) >= threshold - VERIFY_MARGIN
    ]
    alone = encoder.encode([span_text(stored, span)[2] for span in spans]) @ vector
    kept: list[ScoredSpan] = []
    for value, span in sorted(zip(alone.tolist(), spans, strict=True), reverse=True):
        apart = all(span.j <= other.i or other.j <= span.i for other in kept)
        if degree(value) >= threshold - ROUNDING and apart:
            kept.append(ScoredSpan(span.i, span.j, value))
    return kept


def _match(name: str, stored: StoredPassage, span: ScoredSpan) -> Match:
    start, end, text = span_text(stored, span)
    passage = stored.passage
    return Match(
        name,
        passage.document,
        passage.number,
        start,
        end,
        text,
        degree(span.cosine),
        passage.start + start,
        passage.start + end,
    )


def read_phrases(file: Path) -> dict[str, str]:
    """Return the phrases of a file by name: one a line, or a CSV with columns name and phrase.

    In any encoding that `read` knows. Empty lines and lines that begin with ``#`` are left out of
    a text file.

    Raises:
        CorpusError: the file cannot be read, holds no phrase, or names one twice.
    """
    try:
        with file.open("rb") as stream:
            return _named(_rows(stream) if file.suffix.lower() == ".csv" else _lines(stream))
    except OSError as exc:
        raise CorpusError(
            f"The phrases file {file} cannot be read ({exc.strerror}): check the path."
        ) from exc
    except CorpusError as exc:
        raise CorpusError(f"The phrases file {file} is to be corrected: {exc}.") from exc


def _named(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    phrases: dict[str, str] = {}
    for name, phrase in pairs:
        if not phrase.strip():
            raise CorpusError(f"the phrase named {name!r} is empty")
        if BROKEN in phrase:
            raise CorpusError("it holds bytes that are no text")
        if phrases.setdefault(name, phrase) != phrase:
            raise CorpusError(f"two different phrases are named {name!r}")
    if not phrases:
        raise CorpusError("it holds no phrase")
    return phrases


def _lines(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    with open_text(stream, newline=None) as text:
        for line in map(str.strip, text):
            if line and not line.startswith("#"):
                yield line, line


def _rows(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    for row in parse_csv(stream):
        if row.problem:
            raise CorpusError(f"line {row.line} {row.problem}")
        if not {"name", "phrase"} <= set(row.values):
            raise CorpusError("it needs the columns name and phrase in its first line")
        yield str(row.values["name"] or row.values["phrase"]), str(row.values["phrase"])
