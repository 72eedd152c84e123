"""The verb search."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import click

from slice_os.answers import hit_rows, search_answer
from slice_os.cli.options import (
    context_option,
    index_options,
    json_option,
    judge_option,
    lines_option,
    record_options,
)
from slice_os.cli.output import echo_document, echo_hit, echo_json
from slice_os.encoders.judge import ENGLISH
from slice_os.errors import QueryError
from slice_os.options import SearchOptions, TaughtSearchOptions


@click.command(
    "search",
    epilog="""\b
Examples:
  slice-os search "the customer wants to cancel" --index demo.slice
  slice-os search "limitation of liability" --filter "year>=2015" --size 3 --json --index demo.slice
  slice-os search "wants to cancel" --min-degree 0.85 --size 100 --index demo.slice
  slice-os search 'refund "credit card" -fee' --must-not "late fee" --index demo.slice
  slice-os search "wants to cancel" --group --size 5 --context 1 --index demo.slice
  slice-os search "wants to cancel" --judge my-judge --sort degree --index demo.slice
  slice-os search --taught cancel.json --min-probability 0.5 --index demo.slice
  slice-os search "late refund" --mode dense --no-rescore --nl --index demo.slice
""",
)
@click.argument("query", required=False)
@index_options
@click.option(
    "--taught",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Search with a taught phrase ('teach') in place of QUERY, by probability; only --filter, "
    "--size and --offset count beside it.",
)
@record_options(TaughtSearchOptions, "min_probability")
@click.option(
    "--liked",
    multiple=True,
    metavar="WORDS",
    help="Words that the query is drawn towards. May be repeated.",
)
@click.option(
    "--disliked",
    multiple=True,
    metavar="WORDS",
    help="Words that the query is drawn away from. May be repeated.",
)
@record_options(SearchOptions)
@click.option("--no-rescore", is_flag=True, help="The same as --rescore 0.")
@context_option(0)
@judge_option("english")
@json_option
@lines_option
def search_command(
    query: str | None,
    taught: str | None,
    location: str,
    encoder: str | None,
    device: str,
    threads: int | None,
    judge: str | None,
    context: int,
    no_rescore: bool,
    as_json: bool,
    as_lines: bool,
    min_probability: float,
    liked: tuple[str, ...],
    disliked: tuple[str, ...],
    **options: Any,
) -> None:
    """Show the passages that say it best, the matched words marked.

    "exact words" in QUERY have to stand in the passage or its title, -word must not: whole words,
    whatever their case and what stands between them. A minus counts at the beginning of a word; put
    -- before a QUERY that begins with one.

    Any text is a query, if the encoder knows some of it. The number is the degree of similarity of
    the marked words, in [0, 1]; hits are ranked by their scores unless --sort degree is given.
    """
    from slice_os import open as open_index

    if (query is None) == (taught is None):
        raise QueryError("Give a query or --taught FILE, and not both.")
    with open_index(
        location, encoder=encoder, device=device, threads=threads, judge=judge or ENGLISH
    ) as index:
        if taught is not None:
            shared = {name: options[name] for name in ("filters", "size", "offset")}
            hits = index.search_taught(taught, min_probability=min_probability, **shared)
        else:
            options |= {"rescore": 0} if no_rescore else {}
            hits = index.search(str(query), liked=liked, disliked=disliked, **options)
        excerpts = [
            index.show(hit.document, passage=hit.passage, context=context) if context else None
            for hit in hits
        ]
    shown = list(zip(hits, excerpts, strict=True))
    group, first = options["group"], options["offset"] + 1
    rows = hit_rows(hits, excerpts, group)
    if as_json:
        echo_json(search_answer(query or taught or "", rows, group))
    elif as_lines:
        for row in rows:
            echo_json(row, indent=None)
    elif not shown:
        click.echo(f"No hits{_literally(query or '', options['literal'])}.", err=True)
    elif group:
        documents = groupby(shown, lambda pair: pair[0].document)
        for number, (_, pairs) in enumerate(documents, start=first):
            echo_document(number, list(pairs))
    else:
        for number, (hit, excerpt) in enumerate(shown, start=first):
            echo_hit(number, hit, excerpt, with_score=options["sort"] is None)


def _literally(query: str | None, literal: bool) -> str:
    """Return what to try where a query with quotes finds nothing."""
    if literal or '"' not in (query or ""):
        return ""
    return (
        ": words in quotes have to stand in the passage as they are; --literal takes them as text"
    )
