"""What has to hold of a generation before it takes the place of the live one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

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


class CheckError(LocationError):
    """The next generation is not what it should be; the live one was left alone."""


def check_words(live: Backend, target: Backend, encoder: Encoder | None) -> None:
    """Compare the stored words of a sample with the live ones, or with what the encoder gives."""
    names = [name for name, _ in target.sources()]
    some = random.Random(7).sample(names, min(DOCUMENTS, len(names)))
    made = {_key(one): one for one in _with_neighbours(target, some)}

    def compared(packed: PackedPassage) -> bytes:
        """Of words that were handed over the phrase head may be another."""
        return (packed.with_head(None) if encoder is None else packed).to_bytes()

    if encoder is None:
        wanted = {_key(one): one.packed for one in live.passages(documents=some)}
    else:
        words = encoder.encode_words(one.passage.text for one in made.values())
        wanted = {
            key: PackedPassage.pack(own, target.meta.max_words, one.passage, encoder.head)
            for (key, one), own in zip(made.items(), words, strict=True)
        }
    wrong = {
        document
        for document, number in wanted.keys() | made.keys()
        if (key := (document, number)) not in wanted
        or key not in made
        or compared(wanted[key]) != compared(made[key].packed)
    }
    if wrong and encoder is None:  # what was written since it was copied is copied again
        held, has = live.stored([*wrong]), target.stored([*wrong])
        wrong = {
            one for one in wrong if one in held and one in has and held[one].hash == has[one].hash
        }
    if wrong:
        raise _unlike(live)


def _with_neighbours(backend: Backend, documents: Sequence[str]) -> Iterator[StoredPassage]:
    for name in documents:
        yield from with_neighbours(backend.passages(documents=[name]))


def _key(one: StoredPassage) -> tuple[str, int]:
    return one.passage.document, one.passage.number


def _unlike(live: Backend) -> CheckError:
    return CheckError(
        f"The words of the next generation of {live.location} are not those that it was made "
        "from: delete it ('slice-os generations prune') and run reindex again."
    )


def drawn_queries(live: Backend) -> list[SearchQuery]:
    """Return queries drawn from the text: spans, with the vectors that they have in context.

    So that no encoder is needed.
    """
    rng = random.Random(7)
    names = [name for name, _ in live.sources()]
    some = rng.sample(names, min(QUERIES, len(names)))
    queries: list[SearchQuery] = []
    for one in live.passages(documents=some):
        count = len(one.packed)
        if len(queries) == QUERIES or count < WORDS:
            continue
        first = rng.randrange(count - WORDS + 1)
        vector = one.packed.vectors[first : first + WORDS].sum(axis=0)
        start, end = int(one.packed.starts[first]), int(one.packed.ends[first + WORDS - 1])
        text = one.passage.text[start:end]
        lengths = query_lengths(text, live.meta.max_words, False)
        queries.append(SearchQuery(text, vector / np.linalg.norm(vector), lengths, "dense"))
    return queries


def encoded(texts: Sequence[str], backend: Backend, encoder: Encoder) -> list[SearchQuery]:
    """Return texts as queries of a backend."""
    found = encode_with_words(encoder, texts)
    return [
        SearchQuery(text, vector, query_lengths(text, backend.meta.max_words, False), "dense")
        for text, (vector, _) in zip(texts, found, strict=True)
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
    same = live.meta.passage_words == target.meta.passage_words
    for before, after in zip(
        ranked_passages(live, theirs, BEST), ranked_passages(target, ours, BEST), strict=True
    ):
        if before and not after:
            raise CheckError(
                f"A query finds nothing in the next generation of {live.location}: look at it "
                "('slice-os generations') and run reindex again."
            )
        if before:
            best = {_key(one.stored)[: 1 + same] for one in before}
            least = min(one.degree for one in before) - NEAR
            right = [_key(one.stored)[: 1 + same] in best or one.degree >= least for one in after]
            shares.append(sum(right) / len(before))
    return float(np.mean(shares)) if shares else 1.0


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
    same = live.meta.weights_hash == target.meta.weights_hash
    if queries and encoder is not None:
        ours = encoded(queries, target, encoder)
        theirs = ours if same else []
    elif same:
        ours = theirs = drawn_queries(live)
    else:
        ours, theirs = drawn_queries(target), []
    if not same:
        overlap(target, ours, target, ours)
        return None
    share = overlap(live, theirs, target, ours)
    if share < least:
        raise CheckError(
            f"Of the ten best of the sample queries {100 * share:.0f} % are those of the live "
            f"generation or as near, less than the {100 * least:.0f} % asked for: look at them, "
            "or ask for less (--least-overlap)."
        )
    return share
