"""The verb evaluate topics."""

from __future__ import annotations

import math
from typing import Any

import click

from slice_os.cli.options import (
    corpus_options,
    device_option,
    encoder_option,
    json_option,
    threads_option,
)
from slice_os.cli.output import REJECTED, echo_columns, echo_json
from slice_os.lab.cli.topics import Rejected, stages


@click.command(
    epilog="""\b
Examples:
  slice-os evaluate topics tickets.jsonl --label queue -k 20
  slice-os evaluate topics multidogo.jsonl --id-global --label id --label-pattern '^[a-z]+' -k 6
  slice-os evaluate topics news/ --label folder --rater glove.txt --seeds 5 --json
"""
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
@click.option(
    "--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="How many seeds."
)
@click.option(
    "--least",
    type=click.IntRange(min=2),
    default=6,
    show_default=True,
    help="How often a word or phrase has to occur to describe topics.",
)
@json_option
def topics(
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

    rejected = Rejected()
    with stages() as show:
        corpus = read(*paths, **reading, on_reject=rejected)
        found = evaluate_topics(corpus, k, progress=show, **options)
    if as_json:
        echo_json([one.to_dict() for one in found])
    else:
        names = [*found[0].means]
        echo_columns(
            ["k", "model", *names],
            [
                [str(one.k), one.model, *(_told(one.means[x], one.deviations[x]) for x in names)]
                for one in found
            ],
            left=(1,),
        )
    if rejected.count:
        raise click.exceptions.Exit(REJECTED)


def _told(mean: float, deviation: float) -> str:
    if math.isnan(mean):
        return ""
    return f"{mean:.0f}" if mean >= 2 else f"{mean:.3f} ± {deviation:.3f}"
