"""The verb evaluate teaching."""

from __future__ import annotations

import math
from pathlib import Path

import click

from slice_os.cli.log import text_bar
from slice_os.cli.options import index_options, json_option
from slice_os.cli.output import counted, echo_columns, echo_json


@click.command(
    "teaching",
    epilog="""\b
Examples:
  slice-os evaluate teaching gold.jsonl --index demo.slice
  slice-os evaluate teaching gold.jsonl --index demo.slice --phrases 10 --no-peers --json
""",
)
@click.argument("file", type=click.Path(path_type=Path))
@index_options
@click.option(
    "--phrases", type=click.IntRange(min=1), help="Only so many of the queries, drawn at random."
)
@click.option(
    "--passage-encoder",
    metavar="LOCATION",
    help="The encoder of the peer that learns from whole passages.  [default: the index's]",
)
@click.option(
    "--peers/--no-peers",
    default=True,
    show_default=True,
    help="Measure others beside it: the phrase alone, several phrases, the nearest labelled "
    "example, and logistic regression over passage vectors.",
)
@click.option("--seed", default=0, show_default=True, help="Decides the halves of the documents.")
@json_option
def teaching_command(
    file: Path,
    location: str,
    encoder: str | None,
    device: str,
    threads: int | None,
    phrases: int | None,
    passage_encoder: str | None,
    peers: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Measure what teaching phrases is worth, marked spans standing in for a person.

    FILE is a .jsonl, .csv or .tsv with query, document, start and end, as for 'evaluate spans'.
    Each query is taught on half of the documents, with what is chosen to be asked, and judged on
    the passages of the others, of which nothing was asked.
    """
    from slice_os import open as open_index
    from slice_os.lab.evaluate.teaching import evaluate_teaching

    with (
        open_index(location, encoder=encoder, device=device, threads=threads) as index,
        text_bar() as show,
    ):
        report = evaluate_teaching(
            file, index, phrases=phrases, passages=passage_encoder, peers=peers, seed=seed,
            progress=show,
        )  # fmt: skip
    if as_json:
        echo_json(report.to_dict())
        return
    click.echo(
        f"{counted(report.phrases, 'phrase')}, judged on {counted(report.passages, 'passage')}"
    )
    columns = {
        "average precision": "average_precision",
        "best F1 of any threshold": "best_f1",
        "F1 at probability 1/2": "f1",
        "precision at probability 1/2": "precision",
        "calibration error": "calibration_error",
        "the same, of probabilities from 0.05 on": "likely_error",
        "share of phrases below the phrase alone": "worse",
    }
    budgets = [str(one.labels) for one in next(iter(report.ways.values()))]
    for said, field in columns.items():
        rows = [
            [way, *(_number(getattr(one, field)) for one in measured)]
            for way, measured in report.ways.items()
        ]
        rows = [row for row in rows if any(row[1:])]
        click.echo(f"\n{said}, by labels:")
        echo_columns(["", *budgets], rows)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"
