"""What may be asked of an index: each parameter, its default, range and help, in one place.

`Index.search`, `Index.mine`, the command line and the server are made from these records.
"""

from __future__ import annotations

import difflib
import inspect
import re
import reprlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta
from msgspec.inspect import (
    BoolType,
    DataclassType,
    DictType,
    FloatType,
    IntType,
    LiteralType,
    Metadata,
    NoneType,
    StrType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from slice_os.errors import QueryError
from slice_os.storage.contract import Mode, Order
from slice_os.storage.fusion import DEFAULT_FUSION, LATE, FusionName
from slice_os.text import Query, parse_query

MOST = 1_000_000_000
FLAGS = {"filters": "--filter", "allow_hosts": "--allow-host"}
"""Options whose names on the command line are not those of the record's fields."""
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1, le=MOST)]
FiltersOption = Annotated[
    Any,
    Meta(
        description="Only documents with this metadata; also !=, >=, <=, >, <, 'FIELD in A,B', "
        "'FIELD prefix A', 'FIELD exists', several joined by 'or'."
    ),
]
SizeOption = Annotated[Count, Meta(description="Hits; with group, documents.")]
OffsetOption = Annotated[
    Annotated[int, Meta(ge=0, le=MOST)],
    Meta(description="Hits to skip; with group, documents."),
]
Function = TypeVar("Function", bound=Callable[..., Any])
Record = TypeVar("Record", bound="Options")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the records; `of` checks what it is given."""

    @classmethod
    def of(cls: type[Record], **options: Any) -> Record:
        """Return checked options.

        Raises:
            QueryError: an option is unknown, of another type or out of its range.
        """
        types = {field.name: bare(field.type) for field in fields(cls)}
        if unknown := [name for name in options if name not in types]:
            near = difflib.get_close_matches(unknown[0], types, 1)
            raise QueryError(
                f"There is no option {unknown[0]!r}: "
                + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(types)}.")
            )
        plain = {name: _plain(value, types[name]) for name, value in options.items()}
        try:
            return msgspec.convert(plain, cls)
        except msgspec.ValidationError as exc:
            if missing := re.search(r"missing required field `(\w+)`$", str(exc)):
                raise QueryError(f"The option {missing[1]!r} is missing: give it.") from exc
            name = re.findall(r"`\$\.(\w+)", str(exc))[0]
            raise QueryError(
                f"The option {name!r} must be {requirement(types[name])}, not "
                f"{reprlib.repr(options[name])}."
            ) from exc

    def to_dict(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as plain types."""
        defaults = type(self)()
        return {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if getattr(self, name) != getattr(defaults, name)
        }


class WordingOptions(Options, frozen=True, kw_only=True):
    """Which passages are considered, and how operators in a text are read."""

    must: Annotated[
        tuple[str, ...],
        Meta(description='Words that the passage must hold, like "WORDS" in the query.'),
    ] = ()
    must_not: Annotated[
        tuple[str, ...], Meta(description='Words that the passage must not hold, like -"WORDS".')
    ] = ()
    literal: Annotated[bool, Meta(description="Take quotes and minus signs as text.")] = False
    filters: FiltersOption = ()
    all_lengths: Annotated[
        bool,
        Meta(description="Compare spans of every length, not only those near the query's."),
    ] = False

    def parse(self, text: str) -> Query:
        """Return a query with the words that have to stand, or not to stand, in a passage."""
        return parse_query(text, must=self.must, must_not=self.must_not, literal=self.literal)


class SearchOptions(WordingOptions, frozen=True, kw_only=True):
    """The parameters of a search.

    >>> from slice_os.options import SearchOptions
    >>> SearchOptions.of(size=3, must="refund").to_dict()
    {'must': ('refund',), 'size': 3}
    """

    mode: Annotated[Mode, Meta(description="Spans and BM25 together, spans alone, BM25 alone.")] = (
        "hybrid"
    )
    fusion: Annotated[FusionName, Meta(description="How a hybrid search combines the two.")] = (
        DEFAULT_FUSION
    )
    weight: Annotated[Share | None, Meta(description="The weight of BM25 in a hybrid score.")] = (
        None
    )
    late: Annotated[
        Share,
        Meta(
            description="The weight in the ranking of late interaction: each query word with its "
            "nearest word in the passage. rrf, min_max and lexical ignore it."
        ),
    ] = LATE
    min_degree: Annotated[
        Share,
        Meta(
            description="Only hits of at least this degree, among the best 1,000 passages; mining "
            "finds all."
        ),
    ] = 0.0
    size: SizeOption = 10
    offset: OffsetOption = 0
    group: Annotated[bool, Meta(description="Group the hits of a document.")] = False
    sort: Annotated[
        Order | None,
        Meta(description="Sort the hits by degree, highest first; by default by score."),
    ] = None
    rescore: Annotated[
        Annotated[int, Meta(ge=0)],
        Meta(
            description="Encode the best N spans of each hit alone, for the degrees shown; 0: show "
            "degrees in context and by the phrase head, without a run of the encoder."
        ),
    ] = 1


class TaughtSearchOptions(Options, frozen=True, kw_only=True):
    """The parameters of a search with a taught phrase."""

    filters: FiltersOption = ()
    size: SizeOption = 10
    offset: OffsetOption = 0
    min_probability: Annotated[
        Share, Meta(description="Only hits of at least this probability, with a taught phrase.")
    ] = 0.0


class MineOptions(WordingOptions, frozen=True, kw_only=True):
    """The parameters of mining."""

    min_degree: Annotated[Share, Meta(description="The least degree of similarity of a match.")] = (
        0.8
    )
    min_probability: Annotated[
        float,
        Meta(gt=0, lt=1, description="The least probability of a match of a taught phrase."),
    ] = 0.5
    rescore: Annotated[
        bool,
        Meta(
            description="Encode the spans that may be a match alone, without their context; else "
            "the phrase head stands for that: faster, and not as right."
        ),
    ] = True
    graph: Annotated[
        bool,
        Meta(
            description="In a cluster: let the k-NN graph say which passages to read. Faster in a "
            "large index; it misses what only the phrase head sees."
        ),
    ] = False
    top: Annotated[
        Count | None,
        Meta(description="At most this many matches of each name, best first."),
    ] = None
    per_document: Annotated[
        bool, Meta(description="Only the best match of each name in a document.")
    ] = False
    sort: Annotated[
        Order | None,
        Meta(
            description="Sort all matches by degree, highest first; by default they come as they "
            "are found."
        ),
    ] = None


class RequestOptions(WordingOptions, frozen=True, kw_only=True):
    """The parameters of a request that is built for other clients of a cluster."""

    mode: Annotated[
        Literal["hybrid", "dense", "lexical", "mining", "exact"],
        Meta(description="What to ask for; exact reads every stored span."),
    ] = "hybrid"
    fusion: Annotated[
        FusionName,
        Meta(
            description="How hybrid combines words and meaning; rrf and min_max need the "
            "neural-search plugin or a licence."
        ),
    ] = DEFAULT_FUSION
    weight: Annotated[Share | None, Meta(description="The weight of BM25.")] = None
    size: Annotated[Count, Meta(description="Hits.")] = 10
    min_degree: Annotated[Share, Meta(description="The threshold of the mode mining.")] = 0.8


class ServeOptions(Options, frozen=True, kw_only=True):
    """The parameters of a server."""

    host: Annotated[
        str,
        Meta(
            description="The address to listen at. Any but this machine's own needs a token in the "
            "environment, SLICE_OS_TOKEN."
        ),
    ] = "127.0.0.1"
    port: Annotated[
        Annotated[int, Meta(ge=0, le=65_535)],
        Meta(description="The port to listen at; 0 takes a free one."),
    ] = 8080
    workspace: Annotated[
        str | None,
        Meta(
            description="The folder for taught phrases, the only place that is written to; without "
            "one nothing is kept."
        ),
    ] = None
    allow_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="A name under which a proxy asks for this server; by default only names of "
            "this machine are, if it listens there."
        ),
    ] = ()
    cors: Annotated[
        tuple[str, ...],
        Meta(description="An origin, such as https://app.example, whose pages may ask."),
    ] = ()
    log_queries: Annotated[
        bool, Meta(description="Write queries and phrases into the log, too.")
    ] = False
    max_body: Annotated[Count, Meta(description="Bytes of a request at most.")] = 4_000_000
    max_phrases: Annotated[Count, Meta(description="Phrases and texts of a request at most.")] = (
        1000
    )
    max_characters: Annotated[
        Count, Meta(description="Characters of a query, a phrase or a text at most.")
    ] = 10_000
    max_size: Annotated[
        Count, Meta(description="Hits and documents of a page at most, and spans to rescore.")
    ] = 1000
    max_seconds: Annotated[
        Count,
        Meta(description="Seconds of a request at most: mining is then cut, and says so."),
    ] = 300


@cache
def fields(record: type[Options]) -> tuple[msgspec.inspect.Field, ...]:
    """Return the fields of a record, each with its type, default and description."""
    info = type_info(record)
    assert isinstance(info, msgspec.inspect.StructType)
    return info.fields


def flag(name: str) -> str:
    """Return what an option is called on the command line."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def bare(kind: Type) -> Type:
    """Return a type without its description, and without the None that an option may be."""
    if isinstance(kind, Metadata):
        return bare(kind.type)
    if isinstance(kind, UnionType):
        return next(bare(part) for part in kind.types if not isinstance(bare(part), NoneType))
    return kind


def requirement(kind: Type) -> str:
    """Return what a value of a type must be, in words."""
    kind = bare(kind)
    if isinstance(kind, LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    if isinstance(kind, BoolType):
        return "True or False"
    if isinstance(kind, IntType | FloatType):
        noun = "a whole number" if isinstance(kind, IntType) else "a number"
        if kind.gt is not None:
            return f"{noun} strictly between {kind.gt:,} and {kind.lt:,}"
        if kind.le is not None:
            return f"{noun} from {kind.ge:,} to {kind.le:,}"
        return noun if kind.ge is None else f"{noun} of at least {kind.ge:,}"
    if isinstance(kind, DictType):
        return "texts by name"
    if isinstance(kind, VarTupleType) and isinstance(kind.item_type, DataclassType):
        needed = ", ".join(field.name for field in kind.item_type.fields if field.required)
        return f"a list of objects with {needed}"
    return "a text" if isinstance(kind, StrType) else "a text, or several"


def takes(record: type[Options]) -> Callable[[Function], Function]:
    """Give a function that takes ``**options`` the signature and documentation of a record."""

    def describe(function: Function) -> Function:
        signature = inspect.signature(function)
        plain = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=record.__annotations__.get(field.name, Any),
            )
            for field in fields(record)
        ]
        function.__signature__ = signature.replace(parameters=[*plain, *named])  # type: ignore[attr-defined]
        lines = [f"    {field.name}: {described(field)}" for field in fields(record)]
        function.__doc__ = f"{inspect.getdoc(function)}\n\nOptions:\n" + "\n".join(lines)
        return function

    return describe


def described(field: msgspec.inspect.Field) -> str:
    """Return the description of a field."""
    kind = field.type
    schema = kind.extra_json_schema if isinstance(kind, Metadata) else None
    return str((schema or {}).get("description", ""))


def _plain(value: Any, kind: Type) -> Any:
    """Return numbers of numpy as Python's, and one text where several may be as a tuple of it."""
    if isinstance(kind, VarTupleType) and isinstance(value, str):
        return (value,)
    if isinstance(kind, VarTupleType) and isinstance(value, Iterable):
        return tuple(value)
    return value.item() if isinstance(value, np.generic) else value
