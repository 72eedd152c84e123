"""The verbs evaluate degrees and evaluate opposites."""

from __future__ import annotations

from pathlib import Path

import click

from slice_os.cli.options import device_option, encoder_option, json_option, judge_option
from slice_os.cli.output import counted, echo_columns, echo_json, text_bar


@click.command(
    epilog="""\b
Examples:
  slice-os evaluate degrees pairs.jsonl
  slice-os evaluate degrees pairs.csv --encoder my-encoder --json
"""
)
@click.argument("file", type=click.Path(path_type=Path))
@encoder_option
@judge_option("none")
@device_option
@json_option
def degrees(file: Path, encoder: str | None, judge: str | None, device: str, as_json: bool) -> None:
    """Measure what one threshold over many queries is worth.

    FILE is a .csv, .tsv or .jsonl with the columns query (or phrase), passage (or text), and
    correct: yes or no. AUC is how often a right pair has the higher degree than a wrong one: of
    all pairs, and of those of one query. Needs the extra 'evaluate'.
    """
    from slice_os.lab.evaluate.degrees import evaluate_degrees

    with text_bar() as show:
        report = evaluate_degrees(file, encoder=encoder, judge=judge, device=device, progress=show)
    if as_json:
        echo_json(report.to_dict())
        return
    click.echo(
        f"{counted(report.pairs, 'pair')}, {report.right:,} of them right, "
        f"of {counted(report.queries, 'query', 'queries')}"
    )
    echo_columns(
        ["degree", "average precision", "AUC", "AUC within a query"],
        [
            [one.name, *(f"{x:.3f}" for x in (one.average_precision, one.auc, one.auc_within))]
            for one in report.degrees
        ],
    )
    for one in report.degrees:
        click.echo(f"\nThe {one.name} degree as a threshold:")
        echo_columns(
            ["threshold", "precision", "recall"],
            [
                [f"{at:.2f}", f"{precision:.3f}", f"{recall:.3f}"]
                for at, (precision, recall) in one.thresholds.items()
            ],
        )
        click.echo(f"\nHow many of a {one.name} degree are right:")
        echo_columns(
            ["mean degree", "right", "pairs"],
            [
                [f"{held.degree:.3f}", f"{held.right:.3f}", f"{held.pairs:,}"]
                for held in one.reliability
            ],
        )


@click.command(
    epilog="""\b
Examples:
  slice-os evaluate opposites examples/minimal-pairs.tsv
  slice-os evaluate opposites examples/minimal-pairs.tsv --judge words
  slice-os evaluate opposites pairs.csv --encoder my-encoder --json
"""
)
@click.argument("file", type=click.Path(path_type=Path))
@encoder_option
@judge_option("none")
@device_option
@json_option
def opposites(
    file: Path, encoder: str | None, judge: str | None, device: str, as_json: bool
) -> None:
    """Measure how often a paraphrase has a higher degree than an opposite.

    FILE is a .csv, .tsv or .jsonl with the columns phrase, paraphrase and opposite, and perhaps
    kind. Each text is encoded alone.
    """
    from slice_os.lab.evaluate.degrees import evaluate_opposites

    report = evaluate_opposites(file, encoder=encoder, judge=judge, device=device)
    if as_json:
        echo_json(report.to_dict())
        return
    echo_columns(
        ["kind", "pairs", "paraphrase above opposite", "paraphrase", "opposite"],
        [
            [
                kind,
                f"{count:,}",
                f"{report.above[kind]:.3f}",
                f"{report.paraphrase[kind]:.3f}",
                f"{report.opposite[kind]:.3f}",
            ]
            for kind, count in report.pairs.items()
        ],
    )
