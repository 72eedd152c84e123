"""What has to hold of a generation before it takes the place of the live one."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

from slice_os.encoders import Encoder
from slice_os.engine import encode_with_words, query_lengths
from slice_os.engine.rerank import ranked_passages
from slice_os.errors import LocationError
from slice_os.operate.copying import with_neighbours
from slice_os.spans import PackedPassage
from slice_os.storage.contract import Backend, SearchQuery, StoredPassage

DOCUMENTS = 20
"""That are compared byte by byte."""
QUERIES = 20
WORDS = 6
"""Of a query that is drawn from the text."""
BEST = range(10)
NEAR = 0.005
"""By how much less near than the tenth best of the live generation a passage may be."""
Key = tuple[str, int]


class CheckError(LocationError):
    """The next generation is not what it should be; the live one was left alone."""


def check(
    live: Backend,
    target: Backend,
    encoder: Encoder | None,
    *,
    from_words: bool,
    queries: Sequence[str],
    least: float,
) -> float | None:
    """Return the overlap of the ten best, None for another encoder; CheckError if a check fails."""
    check_words(live, target, None if from_words else encoder)
    if live.meta.weights_hash != target.meta.weights_hash:
        ours = _encoded(queries, target, encoder) or drawn_queries(target)
        overlap(target, ours, target, ours)
        return None
    ours = _encoded(queries, target, encoder) or drawn_queries(live)
    share = overlap(live, ours, target, ours)
    if share < least:
        raise CheckError(
            f"Of the ten best of the sample queries {100 * share:.0f} % are those of the live "
            f"generation or as near, less than the {100 * least:.0f} % asked for",
            hint="look at them, or ask for less (--least-overlap).",
        )
    return share


def check_words(live: Backend, target: Backend, encoder: Encoder | None) -> None:
    """Compare the stored words of a sample with the live ones, or with what the encoder gives."""
    sample = draw_documents(target, DOCUMENTS)
    stored = _by_key(
        passage for name in sample for passage in with_neighbours(target.passages(documents=[name]))
    )
    if encoder is None:  # the phrase head may be another
        made = {key: passage.packed.with_head(None).to_bytes() for key, passage in stored.items()}
        expected = {
            key: passage.packed.with_head(None).to_bytes()
            for key, passage in _by_key(live.passages(documents=sample)).items()
        }
    else:
        made = {key: passage.packed.to_bytes() for key, passage in stored.items()}
        words = encoder.encode_words(passage.passage.text for passage in stored.values())
        expected = {
            key: PackedPassage.pack(
                own, target.meta.max_words, passage.passage, encoder.head
            ).to_bytes()
            for (key, passage), own in zip(stored.items(), words, strict=True)
        }
    wrong = {key[0] for key in made.keys() | expected.keys() if made.get(key) != expected.get(key)}
    if wrong and encoder is None:  # what was written since it was copied is copied again
        held, has = live.stored([*wrong]), target.stored([*wrong])
        wrong = {name for name in held.keys() & has.keys() if held[name].hash == has[name].hash}
    if wrong:
        raise CheckError(
            f"The words of the next generation of {live.location} are not those that it was made "
            "from",
            hint="delete it ('slice-os generations prune --unfinished') and run reindex again.",
        )


def draw_documents(backend: Backend, size: int) -> list[str]:
    """Return the ids of so many documents at random, the same ones each time."""
    names = [name for name, _ in backend.sources()]
    return random.Random(7).sample(names, min(size, len(names)))


def _by_key(passages: Iterable[StoredPassage]) -> dict[Key, StoredPassage]:
    return {(one.passage.document, one.passage.number): one for one in passages}


def drawn_queries(live: Backend) -> list[SearchQuery]:
    """Return queries drawn from the text: spans, with the vectors that they have in context.

    So that no encoder is needed.
    """
    rng = random.Random(7)
    queries: list[SearchQuery] = []
    for stored in live.passages(documents=draw_documents(live, QUERIES)):
        count = len(stored.packed)
        if len(queries) == QUERIES or count < WORDS:
            continue
        first = rng.randrange(count - WORDS + 1)
        vector = stored.packed.vectors[first : first + WORDS].sum(axis=0)
        start, end = int(stored.packed.starts[first]), int(stored.packed.ends[first + WORDS - 1])
        text = stored.passage.text[start:end]
        lengths = query_lengths(text, live.meta.max_words, False)
        queries.append(SearchQuery(text, vector / np.linalg.norm(vector), lengths, "dense"))
    return queries


def _encoded(texts: Sequence[str], backend: Backend, encoder: Encoder | None) -> list[SearchQuery]:
    if encoder is None:
        return []
    return [
        SearchQuery(text, vector, query_lengths(text, backend.meta.max_words, False), "dense")
        for text, (vector, _) in zip(texts, encode_with_words(encoder, texts), strict=True)
    ]


def overlap(
    live: Backend, theirs: Sequence[SearchQuery], target: Backend, ours: Sequence[SearchQuery]
) -> float:
    """Return the mean share of the ten best that are the live ones, or as near to the query.

    Of passages that say the same any may be among the ten. Where passages are cut otherwise,
    documents are compared.

    Raises:
        CheckError: a query finds something in the live generation and nothing in the other.
    """
    shares = []
    parts = 2 if live.meta.passage_words == target.meta.passage_words else 1

    def place(stored: StoredPassage) -> tuple[object, ...]:
        return (stored.passage.document, stored.passage.number)[:parts]

    for before, after in zip(
        ranked_passages(live, theirs, BEST), ranked_passages(target, ours, BEST), strict=True
    ):
        if before and not after:
            raise CheckError(
                f"A query finds nothing in the next generation of {live.location}",
                hint="look at it ('slice-os generations') and run reindex again.",
            )
        if before:
            best = {place(hit.stored) for hit in before}
            least = min(hit.degree for hit in before) - NEAR
            right = [place(hit.stored) in best or hit.degree >= least for hit in after]
            shares.append(sum(right) / len(before))
    return float(np.mean(shares)) if shares else 1.0
