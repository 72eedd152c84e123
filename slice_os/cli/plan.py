"""The verb plan."""

from __future__ import annotations

from typing import Any

import click

from slice_os.cli.log import say, say_reject
from slice_os.cli.options import (
    cluster_options,
    corpus_options,
    device_option,
    encoder_option,
    json_option,
    passage_words_option,
    threads_option,
)
from slice_os.cli.output import counted, echo_columns, echo_json


@click.command(
    "plan",
    epilog="""\b
Examples:
  slice-os plan --words 1e9 --tolerance 0.9 --dimensions 192 --replicas 1
  slice-os plan s3://corpus/2024/ --words 5e9 --cores 64 --node-cores 48
""",
)
@click.argument("paths", nargs=-1)
@click.option(
    "--words",
    type=click.FloatRange(1, 1e15),
    metavar="NUMBER",
    help="Words that there will be, such as 1e9.  [default: those of PATHS]",
)
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    help="Cores that encode, of all machines.  [default: those of this one]",
)
@click.option(
    "--node-cores",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Cores of the data nodes, all together.",
)
@passage_words_option("The most words of a passage.")
@encoder_option
@device_option
@threads_option
@corpus_options
@cluster_options
@json_option
def plan_command(
    paths: tuple[str, ...], reading: dict[str, Any], as_json: bool, **options: Any
) -> None:
    """Say what an index of so many words takes: vectors, disk, memory, shards, hours.

    PATHS, a corpus or a sample of it, are read, and some of their passages encoded, so that the
    plan is of these texts and this machine; nothing is written. Else it is of texts like those
    that were measured. docs/scaling.md has the formulas.
    """
    from slice_os import plan, read

    if not paths and options["words"] is None:
        raise click.UsageError("Give --words NUMBER, or the paths of a corpus or a sample of it.")
    if reading and not paths:
        raise click.UsageError("How paths are read is for PATHS: give them.")
    corpus = read(*paths, **reading, on_reject=say_reject) if paths else None
    planned = plan(corpus=corpus, **options)
    summary = planned.to_dict()
    if as_json:
        echo_json(summary)
        return
    if corpus is not None and corpus.rejects:
        say(f"{corpus.rejects:,} rejected, which are not planned for.")
    copies = "1 copy" if not planned.replicas else f"{planned.replicas + 1} copies"
    click.echo(
        f"{planned.words:,} words in {planned.passages:,} passages; tolerance "
        f"{planned.tolerance:g}, {planned.vector_type} vectors of {planned.dimensions} dimensions, "
        f"{copies}."
    )
    hours = (planned.hours_encoding, planned.hours_loading, planned.hours_merging)
    encoding, loading, merging = (f"{value:,.2f} h" for value in hours)
    cores, node_cores = counted(planned.cores, "core"), counted(planned.node_cores, "core")
    rows = [
        ("stored vectors", f"{planned.vectors:,}", f"{planned.words:,}"),
        ("disk", _size(planned.disk), _size(planned.embedded_disk)),
        ("memory beside the heap", _size(planned.off_heap), _size(planned.embedded_off_heap)),
        ("heap of a node", _size(planned.heap), ""),
        ("shards", f"{planned.shards:,}", ""),
        (f"encoding, {cores}", encoding, encoding),
        (f"loading, {node_cores}", loading, ""),
        (f"merging, {node_cores}", merging, ""),
    ]
    echo_columns(("", "cluster", "embedded"), rows)


def _size(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
