"""Mining: every span of the index that says one of the phrases, exhaustively and exactly."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from slice_os.backends.base import Backend, StoredPassage
from slice_os.encoder import Encoder
from slice_os.errors import CorpusError, QueryError
from slice_os.filters import Filter
from slice_os.records import Float32, Match
from slice_os.retrieval import encode_queries, query_lengths, span_text, word_scores
from slice_os.spans import ScoredSpan, cosine, degree, fit_window, span_cosines, spans_above

CHUNK_PHRASES = 256
"""Phrases scored at once: bounds the memory, whatever their number."""


def mine_phrases(
    backend: Backend,
    encoder: Encoder,
    phrases: Mapping[str, str],
    *,
    threshold: float = 0.8,
    filters: Sequence[Filter] = (),
    all_lengths: bool = False,
    verify: bool = False,
    on_progress: Callable[[float], object] = lambda done: None,
) -> Iterator[Match]:
    """Yield every match of the phrases (name -> text), passage by passage, best first in each.

    A match is a span whose indexed degree is at least `threshold`; of those of one phrase that
    overlap only the best stays. With `verify` the spans are also encoded alone, and the verified
    degree must reach the threshold too. `on_progress` is told what share of the work is done.

    Raises:
        QueryError: a phrase holds no word, or the threshold is not in [0, 1].
    """
    if not 0 <= threshold <= 1:
        raise QueryError(f"The threshold {threshold} is not a degree: it must be from 0 to 1.")
    names, texts = list(phrases), list(phrases.values())
    vectors = encode_queries(encoder, texts)
    lengths = [query_lengths(text, backend.meta.max_words, all_lengths) for text in texts]
    cosines = np.full(len(names), cosine(threshold), dtype=np.float32)
    chunks = range(0, len(names), CHUNK_PHRASES)
    work = max(len(chunks) * backend.status().words, 1)
    done = 0

    def count(words: int) -> None:
        nonlocal done
        done += words
        on_progress(min(done / work, 1.0))

    for first in chunks:
        part = slice(first, first + CHUNK_PHRASES)
        passages = backend.scan(vectors[part], lengths[part], cosines[part], filters, count)
        for stored, found in passages:
            for k in (first + k for k in found):
                matches = _matches(stored, vectors[k], lengths[k], threshold)
                if verify and matches:
                    matches = _verified(stored, matches, vectors[k], encoder, threshold)
                for span in matches:
                    yield _match(names[k], stored, span)


def _matches(
    stored: StoredPassage, vector: Float32, lengths: range, threshold: float
) -> list[ScoredSpan]:
    scores = word_scores(stored, vector)
    window = fit_window(lengths, len(scores))
    return spans_above(span_cosines(scores, stored.norms, window), window, cosine(threshold))


def _verified(
    stored: StoredPassage,
    spans: Sequence[ScoredSpan],
    vector: Float32,
    encoder: Encoder,
    threshold: float,
) -> list[ScoredSpan]:
    alone = encoder.encode([span_text(stored, span)[2] for span in spans]) @ vector
    return [
        ScoredSpan(span.i, span.j, float(value))
        for span, value in zip(spans, alone, strict=True)
        if degree(float(value)) >= threshold
    ]


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

    Empty lines and lines that begin with ``#`` are left out of a text file.

    Raises:
        CorpusError: the file cannot be read, holds no phrase, or names one twice.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise CorpusError(f"The phrases file {file} cannot be read: {exc}.") from exc
    phrases: dict[str, str] = {}
    if file.suffix.lower() == ".csv":
        rows = csv.DictReader(text.splitlines())
        if not {"name", "phrase"} <= set(rows.fieldnames or ()):
            raise CorpusError(f"{file} needs the columns name and phrase in its first line.")
        pairs = [(row["name"] or row["phrase"] or "", row["phrase"] or "") for row in rows]
    else:
        lines = [line.strip() for line in text.splitlines()]
        pairs = [(line, line) for line in lines if line and not line.startswith("#")]
    for name, phrase in pairs:
        if not phrase.strip():
            raise CorpusError(f"{file}: the phrase named {name!r} is empty.")
        if phrases.setdefault(name, phrase) != phrase:
            raise CorpusError(f"{file}: two different phrases are named {name!r}.")
    if not phrases:
        raise CorpusError(f"{file} holds no phrase: write one a line.")
    return phrases
