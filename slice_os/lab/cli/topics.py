"""The verbs topics and evaluate topics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from slice_os.cli.log import say, text_bar
from slice_os.cli.options import (
    corpus_options,
    device_option,
    encoder_option,
    json_option,
    threads_option,
)
from slice_os.cli.output import REJECTED, counted, echo_columns, echo_json, shorten
from slice_os.errors import CorpusError
from slice_os.lab.cli import count_option, path_option
from slice_os.types import Reject

WIDTH = 100
"""Characters of a topic's phrases in the table."""
SHOWN = 5
"""Rejects that are named."""

least_option = count_option(
    "--least", 6, "How often a word or phrase has to occur to describe topics.", least=2
)


@click.command(
    "topics",
    epilog="""\b
Examples:
  slice-os topics conversations/ -k 20
  slice-os topics calls.jsonl -k 50 --html topics.html --phrases topics.csv --output runs/topics
  slice-os mine topics.csv --index calls.slice --per-document
""",
)
@click.argument("paths", nargs=-1, required=True)
@count_option("-k", 50, "How many topics.", least=2)
@encoder_option
@device_option
@threads_option
@corpus_options
@count_option("--seed", 42, "Of what is random.", least=0)
@count_option("--epochs", 20, "How often each passage is learnt from.")
@least_option
@click.option(
    "--nearest",
    is_flag=True,
    help="Describe topics by the phrases nearest to them, as published, however rare or alike.",
)
@click.option(
    "--random-rows",
    is_flag=True,
    help="Begin at random, as published: with one --seed, a number is a like topic of any corpus.",
)
@path_option(
    "--output",
    metavar="FOLDER",
    help="Keep vectors and topics here; the same command, or one of another -k, goes on from them.",
)
@path_option(
    "--html",
    help="Write one page that loads nothing: a map, phrases, passages with the words marked.",
)
@path_option(
    "--phrases",
    help="Write the topics' phrases to this .csv, a phrases file for 'mine'.",
)
@json_option
def topics_command(
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
    from slice_os import read, topics
    from slice_os.lab.topics import write_page, write_phrases

    for file in filter(None, (html, phrases)):
        if not file.absolute().parent.is_dir():
            raise CorpusError(f"{file} cannot be written: there is no such folder.")
    if phrases and phrases.suffix.lower() != ".csv":
        raise CorpusError(f"The phrases file {phrases} must be called .csv.")
    rejects: list[Reject] = []
    with text_bar() as show:
        try:
            report = topics(
                read(*paths, **reading, on_reject=rejects.append), progress=show, **options
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
                    str(topic.number),
                    f"{topic.passages:,}",
                    f"{topic.share:.3f}",
                    shorten(", ".join(phrase.text for phrase in topic.phrases), WIDTH),
                ]
                for topic in report.topics
            ],
            left=(3,),
        )
        click.echo(
            f"{counted(len(report.topics), 'topic')} of {counted(report.passages, 'passage')}, "
            f"{counted(report.words, 'word')}, in {report.seconds:.1f} s.",
            err=True,
        )
    _exit_for(rejects)


@click.command(
    "topics",
    epilog="""\b
Examples:
  slice-os evaluate topics tickets.jsonl --label queue -k 20
  slice-os evaluate topics multidogo.jsonl --id-global --label id --label-pattern '^[a-z]+' -k 6
  slice-os evaluate topics news/ --label folder --rater glove.txt --seeds 5 --json
""",
)
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "-k",
    "k",
    type=click.IntRange(min=2),
    multiple=True,
    default=[50],
    show_default=True,
    help="How many topics; may be repeated.",
)
@click.option(
    "--label",
    metavar="FIELD",
    help="The metadata field that holds a document's label, or id.  [default: no labels]",
)
@click.option(
    "--label-pattern",
    "pattern",
    metavar="REGEX",
    help="What of that field is the label.  [default: all of it]",
)
@encoder_option
@click.option(
    "--rater",
    metavar="LOCATION",
    help="An encoder that rates items and passages.  [default: that of the topics, which favours "
    "them]",
)
@device_option
@threads_option
@corpus_options
@count_option("--seeds", 3, "How many seeds.")
@least_option
@json_option
def evaluate_topics_command(
    paths: tuple[str, ...],
    reading: dict[str, Any],
    k: tuple[int, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Measure topics, with LDA's beside them (docs/topics.md).

    NMI and purity compare the documents' topics with labels; NPMI is of a topic's ten first words
    in the passages. Intrusion is how often an intruder among six items is found, by the passages
    that hold them and by the rating encoder; relatedness how often that finds a passage nearer to
    its topic's items than to another's. Means and deviations over seeds. Needs the extras 'train'
    and 'ranking'.
    """
    from slice_os import evaluate_topics, read

    rejects: list[Reject] = []
    with text_bar() as show:
        corpus = read(*paths, **reading, on_reject=rejects.append)
        measured = evaluate_topics(corpus, k, progress=show, **options)
    if as_json:
        echo_json([model.to_dict() for model in measured])
    else:
        names = [*measured[0].means]
        echo_columns(
            ["k", "model", *names],
            [
                [
                    str(model.k),
                    model.model,
                    *(_mean(model.means[name], model.deviations[name]) for name in names),
                ]
                for model in measured
            ],
            left=(1,),
        )
    _exit_for(rejects)


def _mean(mean: float, deviation: float) -> str:
    if math.isnan(mean):
        return ""
    return f"{mean:.0f}" if mean >= 2 else f"{mean:.3f} ± {deviation:.3f}"


def _exit_for(rejects: Sequence[Reject]) -> None:
    """Name the first of what could not be read, if anything, and end with its exit code."""
    for reject in rejects[:SHOWN]:
        say(f"Rejected: {shorten(f'{reject.place}: {reject.reason}', 300)}")
    if len(rejects) > SHOWN:
        say(f"Rejected in all: {len(rejects):,}.")
    if rejects:
        raise click.exceptions.Exit(REJECTED)
