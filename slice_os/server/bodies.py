"""What may be asked over HTTP: the library's own records, and what each endpoint takes besides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from slice_os.errors import QueryError
from slice_os.options import (
    MineOptions,
    Options,
    SearchOptions,
    ServeOptions,
    WordingOptions,
    fields,
)
from slice_os.server.failures import RequestError
from slice_os.teaching.record import Label

Body = TypeVar("Body", bound=Options)
IndexName = Annotated[
    str | None,
    Meta(description="The name of an index, as it was given to --index; by default the first."),
]
Saved = Annotated[
    tuple[str, ...],
    Meta(description="Names under which taught phrases are kept in the workspace."),
]
Texts = str | tuple[str, ...]
Phrases = Annotated[
    Texts | dict[str, Texts],
    Meta(description="A phrase, several, or by name one or several of which any matches."),
]
CounterExamples = Annotated[
    dict[str, Texts],
    Meta(description="By the name of phrases: a span that is nearer to one of these is no match."),
]
MOST_RESCORED = 10_000
"""Spans that a search may encode alone: hits times `rescore`."""


class SearchBody(SearchOptions, frozen=True, kw_only=True):
    """What to search for: a query, or a taught phrase by its name in the workspace."""

    query: Annotated[
        str | None,
        Meta(description='What is looked for; "exact words" must stand there, -word must not.'),
    ] = None
    taught: Annotated[
        str | None,
        Meta(
            description="A taught phrase of the workspace in place of a query; only filters, size, "
            "offset and min_probability count beside it."
        ),
    ] = None
    min_probability: Annotated[
        float,
        Meta(ge=0, le=1, description="Only hits of at least this probability, with taught."),
    ] = 0.0
    liked: Annotated[
        tuple[str, ...], Meta(description="Words that the query is drawn towards.")
    ] = ()
    disliked: Annotated[
        tuple[str, ...], Meta(description="Words that the query is drawn away from.")
    ] = ()
    context: Annotated[
        int, Meta(ge=0, le=20, description="Passages to show before and after that of a hit.")
    ] = 0
    index: IndexName = None


class MineBody(MineOptions, frozen=True, kw_only=True):
    """What to mine for: phrases, taught phrases of the workspace, or both."""

    phrases: Phrases = ()
    counter_examples: CounterExamples = msgspec.field(default_factory=dict)
    taught: Saved = ()
    progress: Annotated[
        bool, Meta(description="Also send a line with the share that is done, once a second.")
    ] = False
    index: IndexName = None


class TeachBody(Options, frozen=True, kw_only=True):
    """A phrase and all that has been said of it until now."""

    phrases: Annotated[Texts, Meta(description="What is looked for, in words.")] = ()
    name: Annotated[
        str | None, Meta(description="What its matches are called; by default the first phrase.")
    ] = None
    labels: Annotated[
        tuple[Label, ...],
        Meta(description="Words of documents, and whether they say what the phrase says."),
    ] = ()
    filters: Annotated[
        Any, Meta(description="Ask only of documents with this metadata, as a search does.")
    ] = ()
    ask: Annotated[
        int, Meta(ge=0, le=50, description="How many questions to return for the next round.")
    ] = 5
    save: Annotated[
        str | None, Meta(description="The name under which the workspace keeps it, if any.")
    ] = None
    seed: Annotated[
        int, Meta(ge=0, le=2**31, description="Decides which passages are read at random.")
    ] = 0
    index: IndexName = None


class ColumnsBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of matches or hits."""

    columns: Annotated[
        dict[str, list[Any]], Meta(description="Values by the name of a column, all of one length.")
    ]


class EmbeddingsBody(msgspec.Struct, frozen=True, kw_only=True):
    """What OpenAI's endpoint takes; what it takes besides is ignored."""

    input: Annotated[
        Texts, Meta(description="A text, or several; numbers of tokens are not taken.")
    ]
    model: Annotated[str, Meta(description="The name of the encoder, as /v1/models says it.")]
    encoding_format: Annotated[
        str,
        Meta(
            description="float, base64 of 32-bit floats (little-endian), or int8 as a cluster's "
            "byte vectors."
        ),
    ] = "float"
    dimensions: Annotated[
        int | None, Meta(description="How many, of those that the encoder has, are kept.")
    ] = None


def decode(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a request.

    Raises:
        QueryError: it is no JSON object.
    """
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise QueryError(f"The request holds no JSON object ({exc}): send one.") from exc


def index_name(name: str | None, indexes: Iterable[str]) -> str:
    """Return the name of an index, by default the first; RequestError if there is none."""
    names = list(indexes)
    if name is not None and name not in names:
        raise RequestError(
            f"There is no index {name[:60]!r} here: there are {', '.join(names)}.", 404
        )
    return names[0] if name is None else name


def chosen(body: Options, record: type[Options]) -> dict[str, Any]:
    """Return those options of a body that a record has."""
    return {field.name: getattr(body, field.name) for field in fields(record)}


def check(body: SearchBody | MineBody | TeachBody, limits: ServeOptions) -> None:
    """Raise QueryError if a body asks for nothing, or for more than a server gives."""
    check_texts(_texts(body), limits)
    if isinstance(body, MineBody) and not any(flat(body.phrases)) and not body.taught:
        raise QueryError("There is nothing to mine for: give phrases or taught.")
    if isinstance(body, SearchBody):
        if (body.query is None) == (body.taught is None):
            raise QueryError("Give a query or taught, and not both.")
        check_page(body.size, body.offset, limits)
        if body.rescore > limits.max_size or body.rescore * body.size > MOST_RESCORED:
            raise QueryError(
                f"rescore times size is {MOST_RESCORED:,} here at most: rescore fewer spans."
            )


def check_page(size: int, offset: int, limits: ServeOptions) -> None:
    """Raise QueryError if a page is larger, or further down, than a server gives."""
    if not 1 <= size <= limits.max_size:
        raise QueryError(f"size is 1 to {limits.max_size:,} here, not {size:,}: ask in pages.")
    if offset > 100 * limits.max_size:
        raise QueryError(f"offset is {100 * limits.max_size:,} here at most: use a filter.")


def check_texts(texts: Iterable[str], limits: ServeOptions) -> None:
    """Raise QueryError if there are more texts, or longer ones, than a server takes."""
    several = list(texts)
    if len(several) > limits.max_phrases:
        raise QueryError(
            f"{len(several):,} texts are too many, {limits.max_phrases:,} are taken at once: send "
            "several requests."
        )
    longest = max(map(len, several), default=0)
    if longest > limits.max_characters:
        raise QueryError(
            f"A text of {longest:,} characters is too long, {limits.max_characters:,} are taken: "
            "shorten it."
        )


def _texts(body: SearchBody | MineBody | TeachBody) -> Iterable[str]:
    """Yield all that is encoded or looked for as words."""
    if isinstance(body, WordingOptions):
        yield from body.must
        yield from body.must_not
    if isinstance(body, SearchBody):
        yield body.query or ""
        yield from body.liked
        yield from body.disliked
    else:
        yield from flat(body.phrases)
    if isinstance(body, MineBody):
        yield from flat(body.counter_examples)
        yield from body.taught


def flat(texts: Texts | Mapping[str, Texts]) -> Iterable[str]:
    """Yield the texts of a text, of several, or of several by name."""
    if isinstance(texts, str):
        yield texts
    elif isinstance(texts, Mapping):
        for some in texts.values():
            yield from flat(some)
    else:
        yield from texts
