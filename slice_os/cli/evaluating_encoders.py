"""The verbs evaluate context and evaluate phrases."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import click
from tqdm import tqdm

from slice_os.cli.evaluating import renamed
from slice_os.cli.options import POSITIVE, device_option, encoder_option, json_option
from slice_os.cli.output import echo_columns, echo_json
from slice_os.evaluation.scorers import DEFAULT_SCORERS, SCORERS


@click.command(
    context_settings=renamed(setup="scorer", most="max-score"),
    epilog="""\b
Examples:
  slice-os evaluate context pairs.csv
  slice-os evaluate context pairs.csv --encoder my-encoder --scorer window --scorer verified
  slice-os evaluate context pairs.csv --n-grams --plot scatter.png
""",
)
@click.argument("file", type=click.Path(path_type=Path))
@encoder_option
@device_option
@click.option(
    "--scorer",
    "scorers",
    type=click.Choice(list(SCORERS)),
    multiple=True,
    help="A way to score a passage; may be repeated.  [default: all but n-grams]",
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
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Plot scores by gold score.",
)
@json_option
def context(
    file: Path,
    encoder: str | None,
    device: str,
    scorers: tuple[str, ...],
    with_n_grams: bool,
    against: str | None,
    max_score: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Measure how well scorers of a passage agree with the gold score of what it contains.

    FILE is a .csv, .tsv or .jsonl with the columns line (the query), paraphrase, passage and
    goldsim (0 to 5). Correlations are Pearson's and Spearman's. Needs the extra 'evaluate'.
    """
    from slice_os.evaluation.context import evaluate_context, plot_context
    from slice_os.evaluation.plots import check_picture

    if plot:
        check_picture(plot)  # before the work

    wanted = [*(scorers or DEFAULT_SCORERS), *(["n-grams"] if with_n_grams else [])]
    bar: tqdm[NoReturn] = tqdm(unit="text", disable=None)
    with bar:

        def show(name: str, done: int, count: int) -> None:
            bar.set_description(name, refresh=False)
            bar.total = count
            bar.update(done - bar.n)

        report = evaluate_context(
            file,
            encoder=encoder,
            device=device,
            scorers=wanted,
            against=against,
            max_score=max_score,
            progress=show,
        )
    if plot:
        plot_context(report, plot)
    if as_json:
        echo_json(report.to_dict())
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


@click.command(
    epilog="""\b
Examples:
  slice-os evaluate phrases phrases/
  slice-os evaluate phrases phrases/ --encoder my-encoder --json
"""
)
@click.argument("folder", type=click.Path(path_type=Path))
@encoder_option
@device_option
@json_option
def phrases(folder: Path, encoder: str | None, device: str, as_json: bool) -> None:
    """Measure an encoder on phrase similarity: BiRD, Turney, PPDB, PAWS-short, PiC-PS.

    FOLDER holds some of bird.txt, turney.txt, ppdb-dev.txt, ppdb-test.txt, paws.tsv,
    pic-ps-train.json and pic-ps-dev.json, as they are published. Needs the extra 'evaluate'.
    """
    from slice_os.evaluation.phrases import evaluate_phrases

    report = evaluate_phrases(
        folder,
        encoder=encoder,
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
