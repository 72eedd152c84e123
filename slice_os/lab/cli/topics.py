"""The verb topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from slice_os.cli.options import (
    corpus_options,
    device_option,
    encoder_option,
    json_option,
    threads_option,
)
from slice_os.cli.output import (
    REJECTED,
    counted,
    echo_columns,
    echo_json,
    progress_bar,
    say,
    shorten,
)
from slice_os.errors import CorpusError
from slice_os.types import Reject

WIDTH = 100
"""Characters of a topic's phrases in the table."""
SHOWN = 5
"""Rejects that are named."""


@click.command(
    epilog="""\b
Examples:
  slice-os topics conversations/ -k 20
  slice-os topics calls.jsonl -k 50 --html topics.html --phrases topics.csv --output runs/topics
  slice-os mine topics.csv --index calls.slice --per-document
"""
)
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "-k", "k", type=click.IntRange(min=2), default=50, show_default=True, help="How many topics."
)
@encoder_option
@device_option
@threads_option
@corpus_options
@click.option(
    "--seed", type=click.IntRange(min=0), default=42, show_default=True, help="Of what is random."
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How often each passage is learnt from.",
)
@click.option(
    "--least",
    type=click.IntRange(min=2),
    default=6,
    show_default=True,
    help="How often a word or phrase has to occur to describe topics.",
)
@click.option(
    "--nearest",
    is_flag=True,
    help="Describe topics by the phrases nearest to them, as published, however rare or alike.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep vectors and topics here; the same command, or one of another -k, goes on from them.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write one page that loads nothing: a map, phrases, passages with the words marked.",
)
@click.option(
    "--phrases",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the topics' phrases to this .csv, a phrases file for 'mine'.",
)
@json_option
def topics(
    paths: tuple[str, ...],
    reading: dict[str, Any],
    html: Path | None,
    phrases: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the topics of a corpus, described with its own phrases (docs/topics.md).

    PATHS are files, folders, globs or - (stdin), as for 'index'. Topics of no passage are left out.
    What cannot be read is skipped and counted; the exit code is then 3. Needs the extra 'train'.
    """
    from slice_os import read
    from slice_os import topics as find_topics
    from slice_os.lab.topics import write_page, write_phrases

    for file in filter(None, (html, phrases)):
        if not file.absolute().parent.is_dir():
            raise CorpusError(f"{file} cannot be written: there is no such folder.")
    if phrases and phrases.suffix.lower() != ".csv":
        raise CorpusError(f"The phrases file {phrases} must be called .csv.")
    rejected = Rejected()
    with stages() as show:
        try:
            report = find_topics(
                read(*paths, **reading, on_reject=rejected), progress=show, **options
            )
        except KeyboardInterrupt:
            if options["output"] is None:
                say("With --output FOLDER, the next run would go on from here.")
            raise
    if html:
        write_page(report, html)
    if phrases:
        write_phrases(report, phrases)
    if as_json:
        echo_json(report.to_dict())
    else:
        echo_columns(
            ["topic", "passages", "share", "phrases"],
            [
                [
                    str(one.number),
                    f"{one.passages:,}",
                    f"{one.share:.3f}",
                    shorten(", ".join(phrase.text for phrase in one.phrases), WIDTH),
                ]
                for one in report.topics
            ],
            left=(3,),
        )
        click.echo(
            f"{counted(len(report.topics), 'topic')} of {counted(report.passages, 'passage')}, "
            f"{counted(report.words, 'word')}, in {report.seconds:.1f} s.",
            err=True,
        )
    if rejected.count:
        raise click.exceptions.Exit(REJECTED)


class Rejected:
    """Counts what could not be read, and names the first of it.

    Attributes:
        count: How much it was.
    """

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, reject: Reject) -> None:
        """Take one."""
        self.count += 1
        if self.count <= SHOWN:
            say(f"Rejected: {shorten(f'{reject.place}: {reject.reason}', 300)}")
        elif self.count == SHOWN + 1:
            say("More are rejected.")


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that shows on a terminal what is done, and how much of it."""
    with progress_bar(1.0) as bar:
        last = ""

        def show(name: str, done: int, count: int) -> None:
            nonlocal last
            if name != last:
                bar.reset()
                last = name
            bar.set_description_str(f"{name}: {done:,} of {count:,}", refresh=False)
            bar.update(done / count - bar.n)

        yield show
