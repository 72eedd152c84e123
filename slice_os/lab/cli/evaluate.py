"""The verb evaluate, and its tasks context, degrees, opposites and phrases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slice_os.cli.log import text_bar
from slice_os.cli.main import LazyGroup
from slice_os.cli.options import POSITIVE, device_option, encoder_option, json_option, judge_option
from slice_os.cli.output import counted, echo_columns, echo_json
from slice_os.lab.cli import (
    COMPARED,
    SIGNIFICANT,
    count_option,
    decimals,
    encoders_option,
    file_argument,
    folder_argument,
    marked,
    path_option,
)
from slice_os.lab.evaluate.scorers import DEFAULT_SCORERS, SCORERS
from slice_os.spans import MAX_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slice_os.lab.evaluate.context import ContextReport
    from slice_os.lab.evaluate.phrases import Figure

TASKS = {
    "context": "lab.cli.evaluate",
    "degrees": "lab.cli.evaluate",
    "opposites": "lab.cli.evaluate",
    "phrases": "lab.cli.evaluate",
    "retrieval": "lab.cli.retrieval",
    "spans": "lab.cli.retrieval",
    "teaching": "lab.cli.teaching",
    "topics": "lab.cli.topics:evaluate_topics_command",
}
"""Task -> the module of slice_os that holds its command, and the command's name if another."""


@click.group(
    "evaluate",
    cls=LazyGroup,
    modules=TASKS,
    epilog="""\b
Examples:
  slice-os evaluate context pairs.csv
  slice-os evaluate degrees pairs.csv
  slice-os evaluate opposites examples/minimal-pairs.tsv
  slice-os evaluate phrases phrases/ --encoder my-encoder
  slice-os evaluate retrieval scifact/ --index scifact.slice
  slice-os evaluate spans gold.jsonl --index demo.slice
  slice-os evaluate teaching gold.jsonl --index demo.slice
  slice-os evaluate topics conversations.jsonl --label domain
""",
)
def evaluate_command() -> None:
    """Measure how good an encoder or an index is (docs/evaluation.md)."""


@click.command(
    "context",
    epilog="""\b
Examples:
  slice-os evaluate context pairs.csv
  slice-os evaluate context pairs.csv --encoder my-encoder --scorer window --scorer rescored
  slice-os evaluate context pairs.tsv --encoder one/ --encoder other/ --scorer "single pass"
  slice-os evaluate context pairs.tsv --scorer okapi
  slice-os evaluate context pairs.csv --n-grams --plot scatter.png
""",
)
@file_argument
@encoders_option
@judge_option("none")
@device_option
@click.option(
    "--scorer",
    "scorers",
    type=click.Choice(list(SCORERS)),
    multiple=True,
    help="A way to score a passage; may be repeated.  [default: all but n-grams, and "
    "judged without a judge]",
)
@click.option("--n-grams", "with_n_grams", is_flag=True, help="Encode every span alone: hours.")
@click.option(
    "--against",
    type=click.Choice(list(SCORERS)),
    help="The scorer to compare the others with by Williams' test.  [default: single pass]",
)
@click.option(
    "--max-score", type=POSITIVE, default=5.0, show_default=True, help="The maximum gold score."
)
@count_option("--max-words", MAX_WORDS, "The longest span.")
@path_option("--plot", help="Plot scores by gold score.")
@json_option
def context_command(
    file: Path,
    encoders: tuple[str, ...],
    judge: str | None,
    device: str,
    scorers: tuple[str, ...],
    with_n_grams: bool,
    against: str | None,
    max_score: float,
    max_words: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Measure how well scorers of a passage agree with the gold score of what it contains.

    FILE is a .csv, .tsv or .jsonl with the columns line (the query), paraphrase, passage and
    goldsim (0 to 5). Correlations are Pearson's and Spearman's. Needs the extra 'evaluate'.
    """
    from slice_os.calibration.plots import check_picture
    from slice_os.lab.evaluate.context import evaluate_context, plot_context

    if plot:
        check_picture(plot)  # before the work
    with text_bar() as show:
        report = evaluate_context(
            file,
            encoder=encoders or None,
            judge=judge,
            device=device,
            scorers=[*(scorers or DEFAULT_SCORERS), *(["n-grams"] if with_n_grams else [])],
            against=against,
            max_score=max_score,
            max_words=max_words,
            progress=show,
        )
    if plot:
        plot_context(report, plot)
    if as_json:
        echo_json(report.to_dict())
        return
    if report.not_found:
        click.echo(
            f"{counted(report.not_found, 'target')} not found in the passage, left out of target "
            "in context.",
            err=True,
        )
    if len(report.encoders) > 1:
        _echo_encoders(report)
        return
    click.echo(f"{report.pairs} pairs; p of Williams' test against {report.against}")
    echo_columns(
        ["scorer", "Pearson", "Spearman", "p"],
        [
            [
                scorer.name,
                *decimals(*scorer.correlation),
                f"{scorer.comparison.p:.2g}" if scorer.comparison else "",
            ]
            for scorer in report.scorers
        ],
    )
    for scorer in report.scorers:
        if scorer.broken is not None:
            click.echo(
                f"Spans shown ({scorer.name}): F1 in characters with the target "
                f"{scorer.span_f1:.3f}; {100 * scorer.broken:.1f} % cross a sentence or end on a "
                "dangling word"
            )


def _echo_encoders(report: ContextReport) -> None:
    """Print a row for each encoder and a column for each scorer, as SLICE's table 1 turned."""
    click.echo(
        f"{report.pairs} pairs; Pearson/Spearman; in a column {COMPARED}: Williams' test, "
        f"p < {SIGNIFICANT}"
    )
    scorers = list(dict.fromkeys(result.name for result in report.scorers))
    cells = {(result.encoder, result.name): result for result in report.scorers}
    rows = []
    for encoder in dict.fromkeys(result.encoder for result in report.scorers):
        row = [encoder or "(words alone)"]
        for scorer in scorers:
            result = cells.get((encoder, scorer))
            if result is None:
                row.append("")
                continue
            value = f"{result.correlation.pearson:.3f}/{result.correlation.spearman:.3f}"
            p = result.comparison.p if result.comparison else None
            row.append(marked(value, p, best=p is None and bool(encoder)))
        rows.append(row)
    echo_columns(["encoder", *(f"{name} " for name in scorers)], rows)


@click.command(
    "degrees",
    epilog="""\b
Examples:
  slice-os evaluate degrees pairs.jsonl
  slice-os evaluate degrees pairs.csv --encoder my-encoder --json
""",
)
@file_argument
@encoder_option
@judge_option("none")
@device_option
@json_option
def degrees_command(
    file: Path, encoder: str | None, judge: str | None, device: str, as_json: bool
) -> None:
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
            [degree.name, *decimals(degree.average_precision, degree.auc, degree.auc_within)]
            for degree in report.degrees
        ],
    )
    for degree in report.degrees:
        click.echo(f"\nThe {degree.name} degree as a threshold:")
        echo_columns(
            ["threshold", "precision", "recall"],
            [
                [f"{threshold:.2f}", *decimals(*reached)]
                for threshold, reached in degree.thresholds.items()
            ],
        )
        click.echo(f"\nHow many of a {degree.name} degree are right:")
        echo_columns(
            ["mean degree", "right", "pairs"],
            [
                [*decimals(tenth.degree, tenth.right), f"{tenth.pairs:,}"]
                for tenth in degree.reliability
            ],
        )


@click.command(
    "opposites",
    epilog="""\b
Examples:
  slice-os evaluate opposites examples/minimal-pairs.tsv
  slice-os evaluate opposites examples/minimal-pairs.tsv --judge english
  slice-os evaluate opposites pairs.csv --encoder my-encoder --json
""",
)
@file_argument
@encoder_option
@judge_option("none")
@device_option
@json_option
def opposites_command(
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
                *decimals(report.above[kind], report.paraphrase[kind], report.opposite[kind]),
            ]
            for kind, count in report.pairs.items()
        ],
    )


@click.command(
    "phrases",
    epilog="""\b
Examples:
  slice-os evaluate phrases phrases/
  slice-os evaluate phrases phrases/ --encoder one/ --encoder other/ --json
  slice-os evaluate phrases phrases/ --vocabulary vocabulary.txt
""",
)
@folder_argument
@encoders_option
@device_option
@click.option(
    "--vocabulary",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A word or phrase a line: how much the nearest of some differ in words.",
)
@json_option
def phrases_command(
    folder: Path, encoders: tuple[str, ...], device: str, vocabulary: Path | None, as_json: bool
) -> None:
    """Measure encoders on phrase similarity: BiRD, Turney, PPDB, PAWS-short, PiC-PS.

    FOLDER holds some of bird.txt, turney.txt, ppdb-train.txt, ppdb-dev.txt, ppdb-test.txt,
    paws.tsv, pic-ps-train.json and pic-ps-dev.json, as they are published. Needs the extra
    'evaluate', and 'train' for the probe of ppdb-train.txt and paws.tsv.
    """
    from slice_os.lab.evaluate.phrases import evaluate_phrases

    report = evaluate_phrases(
        folder,
        encoder=encoders or None,
        vocabulary=vocabulary,
        device=device,
        progress=lambda task: click.echo(f"{task} ...", err=True),
    )
    if as_json:
        echo_json(report.to_dict())
        return
    rows: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in report.figures:
        key = figure.task, figure.measure, f"{figure.count:,}"
        rows.setdefault(key, []).append(figure)
    several = len(report.encoders) > 1
    if several:
        click.echo(
            f"In a row {COMPARED}: Williams' test of correlations, McNemar's of accuracies, "
            f"p < {SIGNIFICANT}"
        )
    echo_columns(
        [
            "task",
            "measure",
            "examples",
            *(report.encoders if len(report.encoders) > 1 else ["value"]),
        ],
        [[*key, *_marked(figures)] for key, figures in rows.items()],
        left=(0, 1),
    )
    if report.absent:
        click.echo(f"Not in the folder: {', '.join(report.absent)}.", err=True)
    for task, why in report.left_out.items():
        click.echo(f"{task} is left out. {why}", err=True)


def _marked(figures: Sequence[Figure]) -> list[str]:
    tested = any(figure.p is not None for figure in figures)
    return [
        marked(f"{figure.value:.3f}", figure.p, tested and figure.p is None) for figure in figures
    ]
