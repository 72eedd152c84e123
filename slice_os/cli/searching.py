"""The verb search."""

from __future__ import annotations

from itertools import groupby
from typing import Any, get_args

import click

from slice_os.cli.options import (
    context_option,
    index_options,
    json_option,
    judge_option,
    lines_option,
    offset_option,
    query_options,
    size_option,
)
from slice_os.cli.output import echo_document, echo_hit, echo_json
from slice_os.encoders.judges import WORDS
from slice_os.storage.contract import Order
from slice_os.storage.fusion import DEFAULT_FUSION, FUSIONS, LATE
from slice_os.types import Excerpt, Hit


@click.command(
    epilog="""\b
Examples:
  slice-os search "the customer wants to cancel" --index demo.slice
  slice-os search "limitation of liability" --filter "year>=2015" --size 3 --json --index demo.slice
  slice-os search "wants to cancel" --min-degree 0.85 --size 100 --index demo.slice
  slice-os search 'refund "credit card" -fee' --must-not "late fee" --index demo.slice
  slice-os search "wants to cancel" --group --size 5 --context 1 --index demo.slice
  slice-os search "wants to cancel" --judge my-judge --sort degree --index demo.slice
  slice-os search "late refund" --mode dense --no-rescore --nl --index demo.slice
"""
)
@click.argument("query")
@index_options
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "dense", "lexical"]),
    default="hybrid",
    show_default=True,
    help="Spans and BM25 together, spans alone, BM25 alone.",
)
@click.option(
    "--fusion",
    type=click.Choice(list(FUSIONS)),
    default=DEFAULT_FUSION,
    show_default=True,
    help="How a hybrid search combines the two.",
)
@click.option("--weight", type=click.FloatRange(0, 1), help="The weight of BM25 in a hybrid score.")
@click.option(
    "--late",
    type=click.FloatRange(0, 1),
    default=LATE,
    show_default=True,
    help="The weight in the ranking of late interaction: each query word with its nearest word in "
    "the passage. rrf, min_max and lexical ignore it.",
)
@click.option(
    "--min-degree",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Only hits of at least this degree, among the best 1,000 passages; 'mine' finds all.",
)
@size_option(help="Hits; with --group, documents.")
@offset_option(help="Hits to skip; with --group, documents.")
@click.option("--group", is_flag=True, help="Group the hits of a document.")
@click.option(
    "--sort",
    "--order",
    type=click.Choice(get_args(Order)),
    help="Sort the hits shown by degree, highest first.  [default: by score]",
)
@context_option(0)
@query_options
@judge_option("words")
@click.option(
    "--rescore",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Encode the best N spans of each hit alone, for the degrees shown.",
)
@click.option(
    "--no-rescore",
    is_flag=True,
    help="Show degrees in context and by the phrase head: no run of the encoder but the query's.",
)
@json_option
@lines_option
def search(
    query: str,
    location: str,
    encoder: str | None,
    device: str,
    threads: int | None,
    judge: str | None,
    min_degree: float,
    offset: int,
    group: bool,
    context: int,
    rescore: int,
    no_rescore: bool,
    as_json: bool,
    as_lines: bool,
    **asked: Any,
) -> None:
    """Show the passages that say it best, the matched words marked.

    "exact words" in QUERY have to stand in the passage or its title, -word must not: whole words,
    whatever their case and what stands between them. A minus counts at the beginning of a word; put
    -- before a QUERY that begins with one.

    Any text is a query, if the encoder knows some of it. The number is the degree of similarity of
    the marked words, in [0, 1].
    """
    from slice_os import open as open_index

    with open_index(
        location, encoder=encoder, device=device, threads=threads, judge=judge or WORDS
    ) as index:
        hits = index.search(
            query,
            offset=offset,
            rescore=0 if no_rescore else rescore,
            min_degree=min_degree,
            group=group,
            **asked,
        )
        around = [
            index.show(hit.document, passage=hit.passage, context=context) if context else None
            for hit in hits
        ]
    found = list(zip(hits, around, strict=True))
    rows = [_row(*one) for one in found]
    if group:
        rows = [_document(list(some)) for _, some in groupby(rows, lambda row: row["document"])]
    if as_json:
        echo_json({"query": query, "documents" if group else "hits": rows})
    elif as_lines:
        for row in rows:
            echo_json(row, indent=None)
    elif not hits:
        click.echo("No hits.", err=True)
    elif group:
        documents = groupby(found, lambda one: one[0].document)
        for number, (_, some) in enumerate(documents, start=offset + 1):
            echo_document(number, list(some))
    else:
        for number, (hit, excerpt) in enumerate(found, start=offset + 1):
            echo_hit(number, hit, excerpt)


def _row(hit: Hit, excerpt: Excerpt | None) -> dict[str, Any]:
    """Return a hit as plain JSON types, with what stands around it if that was asked for."""
    return {**hit.to_dict(), **({"context": excerpt.to_dict()} if excerpt else {})}


def _document(hits: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a document from its hits."""
    return {
        "document": hits[0]["document"],
        "title": hits[0]["title"],
        "degree": max(hit["degree"] for hit in hits),
        "metadata": hits[0]["metadata"],
        "hits": hits,
    }
