"""The verbs evaluate context and evaluate phrases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slice_os.cli.options import POSITIVE, device_option, encoder_option, json_option, judge_option
from slice_os.cli.output import counted, echo_columns, echo_json, text_bar
from slice_os.lab.cli.evaluating import renamed
from slice_os.lab.evaluate.scorers import DEFAULT_SCORERS, SCORERS
from slice_os.spans import MAX_WORDS

if TYPE_CHECKING:
    from slice_os.lab.evaluate.context import ContextReport

SIGNIFICANT = 0.05


@click.command(
    context_settings=renamed(setup="scorer", most="max-score"),
    epilog="""\b
Examples:
  slice-os evaluate context pairs.csv
  slice-os evaluate context pairs.csv --encoder my-encoder --scorer window --scorer verified
  slice-os evaluate context pairs.tsv --encoder one/ --encoder other/ --scorer "single pass"
  slice-os evaluate context pairs.tsv --scorer okapi --statistics wikitext-103.txt
  slice-os evaluate context pairs.csv --n-grams --plot scatter.png
""",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="PATH",
    help="An encoder's folder or file; several are compared.  [default: the one inside]",
)
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
@click.option(
    "--n-grams",
    "with_n_grams",
    is_flag=True,
    help="Encode every span alone: hours.",
)
@click.option(
    "--against",
    type=click.Choice(list(SCORERS)),
    help="The scorer to compare the others with by Williams' test.  [default: single pass]",
)
@click.option(
    "--max-score",
    type=POSITIVE,
    default=5.0,
    show_default=True,
    help="The maximum gold score.",
)
@click.option(
    "--max-words",
    type=click.IntRange(min=1),
    default=MAX_WORDS,
    show_default=True,
    help="The longest span.",
)
@click.option(
    "--statistics",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A text a line, whose statistics okapi takes.  [default: the passages]",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Plot scores by gold score.",
)
@json_option
def context(
    file: Path,
    encoders: tuple[str, ...],
    judge: str | None,
    device: str,
    scorers: tuple[str, ...],
    with_n_grams: bool,
    against: str | None,
    max_score: float,
    max_words: int,
    statistics: Path | None,
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

    wanted = [*(scorers or DEFAULT_SCORERS), *(["n-grams"] if with_n_grams else [])]
    with text_bar() as show:
        report = evaluate_context(
            file,
            encoder=encoders or None,
            judge=judge,
            device=device,
            scorers=wanted,
            against=against,
            max_score=max_score,
            max_words=max_words,
            statistics=statistics,
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
                one.name,
                f"{one.correlation.pearson:.3f}",
                f"{one.correlation.spearman:.3f}",
                f"{one.comparison.p:.2g}" if one.comparison else "",
            ]
            for one in report.scorers
        ],
    )
    for one in report.scorers:
        if one.broken is not None:
            click.echo(
                f"Spans shown ({one.name}): F1 in characters with the target {one.span_f1:.3f}; "
                f"{100 * one.broken:.1f} % cross a sentence or end on a dangling word"
            )


def _echo_encoders(report: ContextReport) -> None:
    """Print a row for each encoder and a column for each scorer, as SLICE's table 1 turned."""
    click.echo(
        f"{report.pairs} pairs; Pearson/Spearman, + the best of its column, * differs from it: "
        f"Williams' test, p < {SIGNIFICANT}"
    )
    scorers = list(dict.fromkeys(one.name for one in report.scorers))
    cells = {(one.encoder, one.name): one for one in report.scorers}
    rows = []
    for encoder in dict.fromkeys(one.encoder for one in report.scorers):
        row = [encoder or "(words alone)"]
        for scorer in scorers:
            one = cells.get((encoder, scorer))
            if one is None:
                row.append("")
                continue
            apart = one.comparison and one.comparison.p < SIGNIFICANT
            mark = "*" if apart else " " if one.comparison or not encoder else "+"
            row.append(f"{one.correlation.pearson:.3f}/{one.correlation.spearman:.3f}{mark}")
        rows.append(row)
    echo_columns(["encoder", *(f"{name} " for name in scorers)], rows)


@click.command(
    epilog="""\b
Examples:
  slice-os evaluate phrases phrases/
  slice-os evaluate phrases phrases/ --encoder my-encoder --json
  slice-os evaluate phrases phrases/ --vocabulary vocabulary.txt
"""
)
@click.argument("folder", type=click.Path(path_type=Path))
@encoder_option
@device_option
@click.option(
    "--vocabulary",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A word or phrase a line: how much the nearest of some differ in words.",
)
@json_option
def phrases(
    folder: Path, encoder: str | None, device: str, vocabulary: Path | None, as_json: bool
) -> None:
    """Measure an encoder on phrase similarity: BiRD, Turney, PPDB, PAWS-short, PiC-PS.

    FOLDER holds some of bird.txt, turney.txt, ppdb-train.txt, ppdb-dev.txt, ppdb-test.txt,
    paws.tsv, pic-ps-train.json and pic-ps-dev.json, as they are published. Needs the extra
    'evaluate', and 'train' for the probe of ppdb-train.txt.
    """
    from slice_os.lab.evaluate.phrases import evaluate_phrases

    report = evaluate_phrases(
        folder,
        encoder=encoder,
        vocabulary=vocabulary,
        device=device,
        progress=lambda task: click.echo(f"{task} ...", err=True),
    )
    if as_json:
        echo_json(report.to_dict())
        return
    echo_columns(
        ["task", "measure", "value", "examples"],
        [[one.task, one.measure, f"{one.value:.3f}", f"{one.count:,}"] for one in report.figures],
    )
    if report.absent:
        click.echo(f"Not in the folder: {', '.join(report.absent)}.", err=True)
    for task, why in report.left_out.items():
        click.echo(f"{task} is left out. {why}", err=True)
