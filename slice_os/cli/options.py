"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
from msgspec.inspect import BoolType, Field, FloatType, IntType, LiteralType, StrType

from slice_os import ClusterSettings
from slice_os.cli.log import Run, json_log
from slice_os.encoders.devices import DEVICES
from slice_os.options import MOST, Options, WordingOptions, bare, described, fields, flag

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
POSITIVE = click.FloatRange(min=0, min_open=True)

an_index = partial(
    click.option, "--index", "-i", "location", envvar="SLICE_OS_INDEX", show_envvar=True
)
index_option: Decorator = an_index(
    required=True,
    metavar="LOCATION",
    help="The index: a folder, or https://host:9200/name in a cluster.",
)
encoder_option: Decorator = click.option(
    "--encoder",
    envvar="SLICE_OS_ENCODER",
    show_envvar=True,
    metavar="LOCATION",
    help="An encoder folder, a checkpoint folder or word vectors in GloVe's text format.  "
    "[default: the encoder that comes with slice-os]",
)


def judge_option(default: str) -> Decorator:
    """Return the option ``--judge`` with what stands for it where it is not given."""
    return click.option(
        "--judge",
        envvar="SLICE_OS_JUDGE",
        show_envvar=True,
        metavar="LOCATION",
        help="What reads a span and what is asked together, and lowers the degree of an "
        "opposite: english, the judge inside; the folder of another; or none.  "
        f"[default: {default}]",
    )


device_option: Decorator = click.option(
    "--device",
    type=click.Choice(DEVICES),
    default="auto",
    show_default=True,
    help="Where the encoder runs; auto is a GPU by CUDA, if it works.",
)
threads_option: Decorator = click.option(
    "--threads", type=click.IntRange(min=1), help="Threads of the encoder; default: all cores."
)


def _group(*options: Decorator) -> Decorator:
    """Return options as one decorator; the help shows them in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


model_options = _group(encoder_option, device_option, threads_option, judge_option("english"))
index_options = _group(index_option, encoder_option, device_option, threads_option)
"""What opens an index."""
ALIASES = {"size": ("--limit", "-n", "-k"), "min_degree": ("--threshold",)}
METAVARS = {
    **{"filters": "FIELD=VALUE", "must": "WORDS", "must_not": "WORDS"},
    **{"host": "ADDRESS", "workspace": "FOLDER", "allow_hosts": "NAME", "cors": "ORIGIN"},
}


def record_options(record: type[Options], *names: str) -> Decorator:
    """Return the options of a record, or of some of its fields: names, types, defaults and help."""
    chosen = [field for field in fields(record) if not names or field.name in names]
    return _group(*map(_record_option, chosen))


def _record_option(field: Field) -> Decorator:
    kind, default, text = bare(field.type), field.default, described(field)
    flags = (flag(field.name), *ALIASES.get(field.name, ()), field.name)
    if isinstance(kind, BoolType):
        if default:
            flags = (f"{flags[0]}/--no-{flags[0][2:]}", field.name)
        return click.option(*flags, is_flag=True, default=default, show_default=default, help=text)
    settings: dict[str, Any] = {"default": default, "show_default": default is not None}
    if isinstance(kind, LiteralType):
        settings["type"] = click.Choice([str(value) for value in kind.values])
    elif isinstance(kind, IntType):
        settings["type"] = click.IntRange(kind.ge, kind.le)
    elif isinstance(kind, FloatType):
        strict = kind.gt is not None
        ends = (kind.gt, kind.lt) if strict else (kind.ge, kind.le)
        settings["type"] = click.FloatRange(*ends, min_open=strict, max_open=strict)
    elif isinstance(kind, StrType):
        settings["metavar"] = METAVARS[field.name]
    else:
        settings = {"multiple": True, "metavar": METAVARS[field.name]}
        text = f"{text} May be repeated."
    return click.option(*flags, help=text, **settings)


filter_option = record_options(WordingOptions, "filters")


def paging_options(things: str) -> Decorator:
    """Return --size and --offset as a search has them, for a list of `things`."""
    return _group(
        click.option(
            "--size",
            *ALIASES["size"],
            "size",
            type=click.IntRange(1, MOST),
            default=100,
            show_default=True,
            help=f"{things} to show.",
        ),
        click.option(
            "--offset", type=click.IntRange(0, MOST), default=0, help=f"{things} to skip."
        ),
    )


def context_option(default: int, **settings: Any) -> Decorator:
    """Return the option that shows the passages around one."""
    given = {"help": "Passages to show before and after it.", **settings}
    return click.option(
        "--context", type=click.IntRange(0, 1000), default=default, show_default=True, **given
    )


json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
lines_option: Decorator = click.option("--nl", "as_lines", is_flag=True, help="JSON lines.")


def _read_fields(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> dict[str, str] | None:
    if value is None:
        return None
    pairs = [pair.strip().rpartition(":") for pair in value.split(",")]
    if not all(name and kind for name, _, kind in pairs):
        raise click.BadParameter(f"{value!r} is not NAME:TYPE, several joined by commas.")
    return {name: kind for name, _, kind in pairs}


_CORPUS = _group(
    click.option(
        "--root",
        type=click.Path(file_okay=False),
        help="Ids of files are their paths below this folder.  [default: what the index remembers; "
        "at first the folder that the paths have in common]",
    ),
    click.option(
        "--id-prefix", metavar="TEXT", help="A prefix for the ids of files below the root."
    ),
    click.option("--id", metavar="ID", help="The id of - (stdin).  [default: a hash of its text]"),
    click.option("--follow", is_flag=True, help="Also follow links that lead out of a folder."),
    click.option(
        "--exclude",
        multiple=True,
        metavar="PATTERN",
        help="Leave out files and folders that fit, as in a .gitignore. May be repeated.",
    ),
    click.option(
        "--include",
        multiple=True,
        metavar="PATTERN",
        help="Of folders and globs, read only files that fit. May be repeated.",
    ),
    click.option("--no-gitignore", is_flag=True, help="Also read what the .gitignore files name."),
    click.option(
        "--encoding",
        metavar="NAME",
        help="The encoding of the texts, such as cp1252.  [default: told by each file]",
    ),
    click.option(
        "--whole-page",
        is_flag=True,
        help="Also read the navigation of web pages, and what asks about cookies.",
    ),
    click.option("--id-field", metavar="FIELD", help="The field that identifies a row."),
    click.option(
        "--id-global",
        is_flag=True,
        help="Ids of rows are those of that field alone, without their file before them.",
    ),
    click.option("--title-field", metavar="FIELD", help="The field that holds a row's title."),
    click.option(
        "--text-field",
        "text_fields",
        multiple=True,
        metavar="FIELD",
        help="The field that holds a row's text, such as body or messages[].content; * is all. "
        "May be repeated.",
    ),
)
_READING = (
    *("root", "id_prefix", "id", "follow", "exclude", "include", "no_gitignore", "encoding"),
    *("whole_page", "id_field", "id_global", "title_field", "text_fields"),
)


def corpus_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how paths are read; `function` is given as `reading` those said."""

    @wraps(function)
    def gathered(*args: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in _READING}
        reading = {name: value for name, value in given.items() if value or value == ""}
        if reading.pop("no_gitignore", False):
            reading["gitignore"] = False
        return function(*args, reading=reading, **options)

    return _CORPUS(gathered)


_CLUSTER = _group(
    click.option(
        "--tolerance",
        type=click.FloatRange(0, 1, min_open=True),
        help="The least cosine of a span with the stored span that stands for it.  [default: 0.8]",
    ),
    click.option(
        "--vector-type",
        type=click.Choice(["byte", "float"]),
        help="How span vectors are stored.  [default: byte]",
    ),
    click.option(
        "--dimensions",
        type=click.IntRange(min=1),
        help="Dimensions of the stored span vectors.  [default: all]",
    ),
    click.option(
        "--engine",
        type=click.Choice(list(filter(None, get_args(get_type_hints(ClusterSettings)["engine"])))),
        help="What searches the span vectors: lucene or faiss of a knn_vector, the others of a "
        "dense_vector.  [default: lucene, hnsw]",
    ),
    click.option(
        "--codec",
        metavar="NAME",
        help="How the server compresses texts and words: best_compression is smaller and slower to "
        "read.  [default: default]",
    ),
    click.option(
        "--analyzer", metavar="NAME", help="The analyzer of the text, for BM25.  [default: english]"
    ),
    click.option("--shards", type=click.IntRange(min=1), help="Primary shards.  [default: 1]"),
    click.option("--replicas", type=click.IntRange(min=0), help="Replicas.  [default: 1]"),
    click.option(
        "--fields",
        metavar="NAME:TYPE,...",
        callback=_read_fields,
        help="Metadata to map with a type, for other clients to sort and aggregate by: "
        "year:integer becomes fields.year.",
    ),
)


def cluster_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a new index in a cluster, given as one argument, `cluster`."""

    @wraps(function)
    def gathered(**arguments: Any) -> Any:
        names = ClusterSettings.__annotations__
        given = {name: arguments.pop(name) for name in names}
        chosen = {name: value for name, value in given.items() if value is not None}
        return function(**arguments, cluster=chosen)

    return _CLUSTER(gathered)


def passage_words_option(help_text: str) -> Decorator:
    """Return --passage-words; the help says of what."""
    return click.option(
        "--passage-words", type=click.IntRange(5, 1000), help=f"{help_text}  [default: 110]"
    )


partition_option: Decorator = click.option(
    "--partition",
    metavar="I/N",
    help="Only the documents whose ids fall to the share I, from 0, of N runs side by side, which "
    "are given the same paths.",
)
rate_option: Decorator = click.option(
    "--max-rate",
    type=POSITIVE,
    metavar="NUMBER",
    help="Take at most so many passages a second.  [default: no limit]",
)
_LAYOUT = _group(
    passage_words_option("For a new index: the most words of a passage."),
    click.option(
        "--store",
        metavar="FIELDS",
        callback=lambda context, option, value: (
            None if value is None else [name for name in map(str.strip, value.split(",")) if name]
        ),
        help="For a new index: the metadata that hits return, names joined by commas.  "
        "[default: all]",
    ),
)


def layout_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a new index is made, in a cluster or not."""
    return _LAYOUT(cluster_options(function))


def _log_in(context: click.Context, parameter: click.Parameter, value: str) -> None:
    if value == "json":  # of the whole command, so that its errors are said so, too
        context.find_root().with_resource(json_log())


log_option: Decorator = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    envvar="SLICE_OS_LOG_FORMAT",
    show_envvar=True,
    is_eager=True,
    expose_value=False,
    callback=_log_in,
    help="How warnings and errors are written to stderr; json is one JSON object a line.",
)
_RUN = _group(
    rate_option,
    click.option(
        "--metrics",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write what the run has counted here at its end, however it ends, in Prometheus' text "
        "format.",
    ),
    log_option,
)


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a verb that works for long on an index, `location`.

    The verb is given `max_rate`, and the `Run` that it is, as `run`.
    """

    @wraps(function)
    def gathered(*, metrics: Path | None, **arguments: Any) -> Any:
        verb = click.get_current_context().info_name or ""
        with Run(verb, arguments["location"], metrics) as run:
            return function(**arguments, run=run)

    return _RUN(gathered)
