"""A request as other programs make it: curl, the command line, Python, the query of a cluster."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from shlex import join, quote
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from slice_os.answers import to_json
from slice_os.api import Index
from slice_os.engine.search_request import as_curl, build_request
from slice_os.errors import SliceOSError
from slice_os.options import RequestOptions, TaughtSearchOptions, fields, flag
from slice_os.server.bodies import MineBody, SearchBody, Texts
from slice_os.server.mining import named
from slice_os.server.workspace import Workspace
from slice_os.storage import module_for

PHRASES = "slice-os-phrases.csv"
MATCHES = 1000
"""Passages that a query for mining asks a cluster for."""
SUBJECT = frozenset(
    ("query", "phrases", "counter_examples", "taught", "index", "progress", "min_probability")
)
"""Fields of a body that are no option of a verb, or not always."""
ADDED = (
    "The cluster's answer is without what slice-os adds to it: spans scored over all words, "
    "late interaction, rescoring."
)
DEFAULT = "This index is a folder: the query is for one in a cluster, with the default settings."
LIKED = "The query is without the words that are liked and disliked."
NO_QUERY = "A taught phrase is no query of a cluster."


class Same(msgspec.Struct, frozen=True):
    """A request in four forms; each line of them may be pasted as it is."""

    curl: Annotated[str, Meta(description="For this server.")]
    command: Annotated[str, Meta(description="For a POSIX shell.")]
    python: str
    dsl: Annotated[
        str,
        Meta(
            description="A curl command for each query of a cluster, its DSL within; may be empty."
        ),
    ]
    note: Annotated[str, Meta(description="In what dsl differs, in sentences.")]


def same(
    index: Index, body: SearchBody | MineBody, url: str, workspace: Workspace, *, token: bool
) -> Same:
    """Return a request in all forms.

    Args:
        index: The one that is asked.
        body: The request.
        url: That of its endpoint.
        workspace: Where its taught phrases are.
        token: Whether the server wants one.
    """
    names = [body.taught] if isinstance(body.taught, str) else body.taught or ()
    taught = [str(workspace.file(name)) for name in names]
    dsl, note = _dsl(index, body)
    command, program = _command(index, body, taught), _python(index, body, taught)
    return Same(_curl(body, url, token), command, program, dsl, note)


def _curl(body: SearchBody | MineBody, url: str, token: bool) -> str:
    words = ["curl -sS", *(["-N"] if isinstance(body, MineBody) else [])]
    words += ["-H 'Content-Type: application/json'", quote(url)]
    words += ['-H "Authorization: Bearer $SLICE_OS_TOKEN"'] if token else []
    return f"{' '.join(words)} \\\n  -d {quote(to_json(body.to_dict()))}"


def _options(body: SearchBody | MineBody) -> dict[str, Any]:
    """Return the options of a body that differ from their defaults, lists as lists."""
    kept = {name: value for name, value in body.to_dict().items() if name not in SUBJECT}
    if body.taught:
        kept["min_probability"] = body.min_probability
    if isinstance(body, SearchBody) and body.taught:
        kept = {f.name: kept[f.name] for f in fields(TaughtSearchOptions) if f.name in kept}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in kept.items()}


def _command(index: Index, body: SearchBody | MineBody, taught: Sequence[str]) -> str:
    verb, first = ["search" if isinstance(body, SearchBody) else "mine"], ""
    if isinstance(body, MineBody):
        phrases = named(body.phrases)
        verb += taught
        if all(_texts(texts) == [name] for name, texts in phrases.items()):
            for phrase in phrases:
                verb += ["--phrase", phrase]
            for name, texts in body.counter_examples.items():
                for text in _texts(texts):
                    verb += ["--not", f"{name}={text}"]
        else:
            first = f"printf %s {quote(_as_csv(phrases, body.counter_examples))} > {PHRASES}\n"
            verb.append(PHRASES)
    elif taught:
        verb += ["--taught", *taught]
    words = ["--index", index.location, *(["--judge", "none"] if index.judge is None else [])]
    for name, value in _options(body).items():
        if isinstance(value, bool):
            words.append(flag(name) if value else f"--no-{flag(name)[2:]}")
        else:
            for each in _filters(value) if name == "filters" else _list(value):
                words += [flag(name), str(each)]
    query = [body.query] if isinstance(body, SearchBody) and body.query is not None else []
    if query and query[0].startswith("-"):
        return f"{first}{join(['slice-os', *verb, *words, '--', *query])}"
    return f"{first}{join(['slice-os', *verb, *query, *words])}"


def _python(index: Index, body: SearchBody | MineBody, taught: Sequence[str]) -> str:
    options = _options(body)
    options.pop("context", None)  # what is printed has none
    imports, (place, thing, asked) = ["import slice_os"], ("index.search", "hit", "")
    if isinstance(body, SearchBody):
        place, asked = ("index.search_taught", taught[0]) if taught else (place, body.query or "")
        asked = repr(asked)
    else:
        place, thing, asked = "index.mine", "match", repr(_plain(body.phrases))
        if body.counter_examples:
            options["counter_examples"] = _plain(body.counter_examples)
        if taught:
            imports.append("from slice_os.teaching.record import read_taught")
            asked = f"{{taught.name: taught for taught in map(read_taught, {[*taught]!r})}}"
            asked += f" | {_plain(named(body.phrases))!r}" if body.phrases else ""
    more = "".join(f", {name}={_plain(value)!r}" for name, value in options.items())
    judge = ", judge=None" if index.judge is None else ""
    return "\n".join(
        [
            *imports,
            "",
            f"with slice_os.open({index.location!r}{judge}) as index:",
            f"    for {thing} in {place}({asked}{more}):",
            f"        print({thing}.degree, {thing}.text)",
        ]
    )


def _dsl(index: Index, body: SearchBody | MineBody) -> tuple[str, str]:
    """Return the command that asks a cluster, and in what its answer differs."""
    if body.taught:
        return "", NO_QUERY
    is_folder = module_for(index.location, "search_request") is None
    place, notes = (None, [ADDED, DEFAULT]) if is_folder else (index.location, [ADDED])
    asked = {f.name: getattr(body, f.name) for f in fields(RequestOptions) if hasattr(body, f.name)}
    if isinstance(body, SearchBody):
        texts: list[str] = [body.query or ""]
        asked |= {"size": body.size + body.offset, "min_degree": RequestOptions().min_degree}
        notes += [LIKED] if body.liked or body.disliked else []
    else:
        texts = [text for some in named(body.phrases).values() for text in _texts(some)]
        asked |= {"mode": "mining", "size": MATCHES}
    try:
        bodies = [build_request(text, place, encoder=index.encoder, **asked) for text in texts]
    except SliceOSError as error:
        return "", str(error)
    return "\n".join(as_curl(asks, place) for asks in bodies), " ".join(notes)


def _as_csv(phrases: Mapping[str, Texts], counter_examples: Mapping[str, Texts]) -> str:
    """Return phrases and counter-examples by name as a file of phrases."""
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["name", "phrase", "not"])
    for name, texts in phrases.items():
        table.writerows([name, text, ""] for text in _texts(texts))
        table.writerows([name, "", text] for text in _texts(counter_examples.get(name, ())))
    return stream.getvalue()


def _filters(filters: Any) -> list[str]:
    """Return filters as texts; a mapping has equalities, a list in it any of its values."""
    if not isinstance(filters, Mapping):
        return _list(filters)
    return [
        " or ".join(f"{name}={_word(value)}" for value in _list(values))
        for name, values in filters.items()
    ]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else [value]


def _texts(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else [*texts]


def _plain(value: Any) -> Any:
    """Return a value with lists in place of tuples."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value
