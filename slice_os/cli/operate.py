"""The verbs of operators: reindex, swap, rollback, generations, backup, restore."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slice_os.cli.log import Run, is_json, say, share_bar
from slice_os.cli.options import (
    an_index,
    corpus_options,
    device_option,
    encoder_option,
    index_option,
    json_option,
    layout_options,
    run_options,
    threads_option,
)
from slice_os.cli.output import counted, echo_columns, echo_json, is_terminal, plain
from slice_os.errors import WritesLostError
from slice_os.types import OnProgress, Reject

if TYPE_CHECKING:
    from slice_os.storage.contract import IndexStatus

accept_option = click.option(
    "--accept-rejects",
    is_flag=True,
    help="Make it live although it lacks documents that were rejected.",
)


@click.command(
    "reindex",
    epilog="""\b
Examples:
  slice-os reindex --index https://host:9200/calls --encoder my-encoder/
  slice-os reindex --index https://host:9200/calls --shards 3 --dry-run
  slice-os reindex --index https://host:9200/calls --tolerance 0.85 --no-swap
  slice-os reindex corpus/ --index my.slice
  slice-os reindex --index my.slice --to https://host:9200/calls
""",
)
@click.argument("paths", nargs=-1)
@index_option
@encoder_option
@device_option
@threads_option
@layout_options
@click.option(
    "--from",
    "source",
    type=click.Choice(["words", "text", "corpus"]),
    help="Take the stored word vectors, or encode the stored text, or the paths.  [default: the "
    "paths, if there are any; else words, if they suffice]",
)
@corpus_options
@click.option(
    "--to",
    metavar="LOCATION",
    help="Copy to another location instead: a folder, or https://host:9200/name.",
)
@click.option(
    "--queries",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Queries, one a line, that both generations are asked.  [default: spans of the text]",
)
@click.option(
    "--least-overlap",
    type=click.FloatRange(0, 1),
    help="The least share of the ten best that must be as near to the query as those of the live "
    "generation, if the encoder is the same.  [default: 0.8]",
)
@click.option("--no-swap", is_flag=True, help="Leave the live generation; 'swap' moves the name.")
@accept_option
@click.option("--dry-run", is_flag=True, help="Say what would be done, and how long it takes.")
@run_options
@json_option
def reindex_command(
    paths: tuple[str, ...],
    location: str,
    reading: dict[str, Any],
    file: Path | None,
    least_overlap: float | None,
    no_swap: bool,
    as_json: bool,
    run: Run,
    **options: Any,
) -> None:
    """Build the next generation of an index beside the live one, check it, and make it live.

    What is not said stays as it is (the defaults below are a new index's): name only what changes,
    and the encoder, if it is not the one inside. It is made from what the index holds;
    documents of PATHS, if they are given, are read and encoded anew instead. The live generation is
    searched and written to meanwhile, and nothing of what is written is lost. Interrupted or
    killed, the same command goes on. 'slice-os rollback' goes back.
    """
    from slice_os import read
    from slice_os import reindex as build

    rejected: dict[str, str] = {}

    def note(reject: Reject) -> None:
        if reject.place not in rejected:
            rejected[reject.place] = reject.reason
            say(
                f"Rejected: {reject.place}"
                if is_json()
                else f"Rejected: {reject.place}: {reject.reason}"
            )

    if paths:
        options["corpus"] = read(*paths, **reading, on_reject=note)
    elif reading:
        raise click.UsageError("How paths are read is for PATHS: give them.")
    if file is not None:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        options["queries"] = [line for line in lines if line.strip()]
    if least_overlap is not None:
        options["least_overlap"] = least_overlap
    try:
        with share_bar("documents") as tell:
            report = build(location, swap=not no_swap, on_progress=tell, on_reject=note, **options)
    except KeyboardInterrupt:
        say("Interrupted: the live generation is as it was; run the command again to go on.")
        raise click.exceptions.Exit(130) from None
    run.report, summary = report, report.to_dict()
    if as_json:
        echo_json(summary)
    elif options["dry_run"]:
        click.echo(
            f"{location}: generation {summary['generation']} would be made from "
            f"{_source(summary)}: {counted(summary['passages'], 'passage')}, "
            f"{counted(summary['words'], 'word')}, some {summary['bytes'] / 1e6:,.1f} MB; about "
            f"{summary['seconds'] / 3600:.2f} hours of this machine."
        )
    else:
        click.echo(_made(location, options["to"], summary))
    if rejected:
        say(f"{len(rejected):,} rejected.")
        raise click.exceptions.Exit(3)


def _made(location: str, to: str | None, summary: Mapping[str, Any]) -> str:
    documents, took = counted(summary["documents"], "document"), f"in {summary['seconds']:.1f} s"
    if to:
        return f"{to} holds {documents}, {summary['copied']:,} copied from {location} {took}."
    overlap = summary["overlap"]
    shared = "" if overlap is None else f", {100 * overlap:.0f} % of the ten best kept"
    live = "live" if summary["live"] else "ready: slice-os swap makes it live"
    return (
        f"{location}: generation {summary['generation']} holds {documents}, "
        f"{summary['copied']:,} copied from {_source(summary)} {took}{shared}; it is {live}."
    )


def _source(summary: Mapping[str, Any]) -> str:
    return "the corpus" if summary["source"] == "corpus" else f"stored {summary['source']}"


@click.command("swap", epilog="\b\nExample:\n  slice-os swap --index https://host:9200/calls\n")
@index_option
@encoder_option
@device_option
@threads_option
@accept_option
@json_option
def swap_command(location: str, as_json: bool, **options: Any) -> None:
    """Make the generation live that 'reindex --no-swap' has built."""
    from slice_os import swap as make_live

    made = make_live(location, **options)
    _say(location, made.number, as_json)


@click.command(
    "rollback",
    epilog="""\b
Examples:
  slice-os rollback --index https://host:9200/calls
  slice-os rollback --index my.slice --drop-writes
""",
)
@index_option
@click.option(
    "--keep-writes/--drop-writes",
    default=None,
    help="What becomes of documents that were written since: they are copied back, or left out.  "
    "[default: copied, if the encoder is the same and no corpus was read; else it asks]",
)
@encoder_option
@device_option
@threads_option
@json_option
def rollback_command(
    location: str, keep_writes: bool | None, as_json: bool, **options: Any
) -> None:
    """Make the former generation live again, with what was written since."""
    from slice_os import rollback

    try:
        generation = rollback(location, keep_writes=keep_writes, **options)
    except WritesLostError as exc:
        if not is_terminal(sys.stdin, sys.stderr):
            raise
        click.confirm(f"{plain(str(exc.args[0]))}. Go back without them?", abort=True, err=True)
        generation = rollback(location, keep_writes=False, **options)
    _say(location, generation.number, as_json)


def _say(location: str, number: int, as_json: bool) -> None:
    if as_json:
        echo_json({"index": location, "generation": number})
    else:
        click.echo(f"{location}: generation {number} is live.")


@click.group(
    "generations",
    invoke_without_command=True,
    epilog="""\b
Examples:
  slice-os generations --index https://host:9200/calls
  slice-os generations prune --index https://host:9200/calls --keep 1
""",
)
@an_index(metavar="LOCATION", help="The index: a folder, or https://host:9200/name in a cluster.")
@json_option
@click.pass_context
def generations_command(context: click.Context, location: str | None, as_json: bool) -> None:
    """List the generations of an index: live, building, ready, retired, rolled back."""
    from slice_os import generations as listed

    if context.invoked_subcommand is not None:
        return
    if location is None:
        raise click.UsageError("Missing option '--index'.")
    listing = listed(location)
    if as_json:
        echo_json([generation.to_dict() for generation in listing])
        return
    rows = [
        (
            str(generation.number),
            generation.state,
            generation.meta.encoder,
            f"{generation.documents:,}",
            f"{generation.bytes:,}",
            generation.made,
            _builder(generation.build),
        )
        for generation in listing
    ]
    names = ("generation", "state", "encoder", "documents", "bytes", "made", "built by")
    echo_columns(names, rows)


def _builder(build: dict[str, Any]) -> str:
    if "by" not in build:
        return ""
    far = f", {build['done']:,} of {build['of']:,}" if "of" in build else ""
    return f"{build['by']} since {build['since']}{far}"


@generations_command.command(
    "prune",
    epilog="\b\nExample:\n  slice-os generations prune --index my.slice --keep 0 --unfinished\n",
)
@index_option
@click.option("--keep", type=click.IntRange(min=0), default=1, show_default=True,
              help="Retired generations to keep, the newest.")  # fmt: skip
@click.option("--unfinished", is_flag=True, help="Also delete what was begun and not made live.")
@json_option
def prune_command(location: str, keep: int, unfinished: bool, as_json: bool) -> None:
    """Delete retired generations, and those that were gone back from."""
    from slice_os import generations, prune_generations

    deleted = prune_generations(location, keep, unfinished=unfinished)
    left = [generation.state for generation in generations(location)]
    if as_json:
        echo_json({"index": location, "deleted": [generation.number for generation in deleted]})
        return
    click.echo(f"{location}: {counted(len(deleted), 'generation')} deleted.")
    if retired := left.count("retired"):
        say(f"{counted(retired, 'retired generation')} kept; --keep 0 deletes all.")
    if unfinished_ones := left.count("building") + left.count("ready"):
        say(f"{counted(unfinished_ones, 'unfinished generation')} left; --unfinished deletes it.")


@click.command(
    "backup",
    epilog="""\b
Examples:
  slice-os backup backups/monday.slice --index demo.slice
  slice-os search "wants to cancel" --index backups/monday.slice
""",
)
@click.argument("to", type=click.Path(path_type=Path))
@index_option
@click.option(
    "--link",
    is_flag=True,
    help="Share files with the index by hard links: no room is taken, and a failing disk takes "
    "both.",
)
@json_option
def backup_command(to: Path, location: str, link: bool, as_json: bool) -> None:
    """Copy an index in a folder to a new folder, TO.

    The generation that is live; it may be searched and written to meanwhile. The copy is checked,
    and is an index itself. Broken off, it leaves TO.part, and the same command goes on from there.
    An index in a cluster is backed up by the cluster (docs/operations.md).
    """
    from slice_os import backup as copy

    _run(lambda tell: copy(location, to, link=link, on_progress=tell), "Backed up", as_json)


@click.command(
    "restore",
    epilog="""\b
Examples:
  slice-os restore backups/monday.slice --index demo.slice
  slice-os restore backups/monday.slice --index demo.slice --overwrite
""",
)
@click.argument("backup", type=click.Path(path_type=Path))
@index_option
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the index that is there, in one step at the end; searches go on.",
)
@json_option
def restore_command(backup: Path, location: str, overwrite: bool, as_json: bool) -> None:
    """Make an index in a folder of a backup.

    BACKUP is checked first, and stays as it is.
    """
    from slice_os import restore as put_back

    _run(
        lambda tell: put_back(backup, location, overwrite=overwrite, on_progress=tell),
        "Restored",
        as_json,
    )


def _run(work: Callable[[OnProgress], IndexStatus], done: str, as_json: bool) -> None:
    with share_bar("copying") as tell:
        state = work(tell)
    if as_json:
        echo_json(state.to_dict())
    else:
        click.echo(
            f"{done}: {state.location}, {counted(state.documents, 'document')}, "
            f"{counted(state.passages, 'passage')}, {state.bytes:,} bytes."
        )
