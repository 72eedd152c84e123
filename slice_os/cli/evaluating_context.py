"""The verb evaluate context."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import click
from tqdm import tqdm

from slice_os.cli.options import POSITIVE, any_encoder_option, device_option, json_option
from slice_os.cli.output import echo_columns, echo_json

SETUPS = (
    "bm25", "full context", "start and end", "single pass", "window", "verified", "n-grams",
    "target in context", "target alone",
)  # fmt: skip


@click.command(
    epilog="""\b
Examples:
  slice-os evaluate context pairs.csv
  slice-os evaluate context pairs.csv --encoder my-encoder --setup window --setup verified
  slice-os evaluate context pairs.csv --n-grams --plot scatter.png
"""
)
@click.argument("file", type=click.Path(path_type=Path))
@any_encoder_option
@device_option
@click.option(
    "--setup",
    "setups",
    type=click.Choice(SETUPS),
    multiple=True,
    help="A way to score a passage; may be repeated. Default: all but n-grams.",
)
@click.option("--n-grams", "with_n_grams", is_flag=True, help="Encode every span alone too: long.")
@click.option(
    "--against",
    type=click.Choice(SETUPS),
    help="What the others are compared with by Williams' test; default: single pass.",
)
@click.option(
    "--most",
    type=POSITIVE,
    default=5.0,
    show_default=True,
    help="The gold score of equals.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw scores against gold."
)
@json_option
def context(
    file: Path,
    encoder: str | None,
    device: str,
    setups: tuple[str, ...],
    with_n_grams: bool,
    against: str | None,
    most: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Measure, on pairs of known similarity, how near passages come to what they say.

    FILE is a .csv, .tsv or .jsonl with the columns line (the query), paraphrase, passage and
    goldsim (0 to 5). Correlations are Pearson's and Spearman's. Needs the extra 'evaluate'.
    """
    from slice_os.evaluation.context import evaluate_context, plot_context
    from slice_os.evaluation.plots import check_picture
    from slice_os.evaluation.setups import DEFAULT_SETUPS

    if plot:
        check_picture(plot)  # before the work

    wanted = [*(setups or DEFAULT_SETUPS), *(["n-grams"] if with_n_grams else [])]
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
            setups=wanted,
            against=against,
            most=most,
            progress=show,
        )
    if plot:
        plot_context(report, plot)
    if as_json:
        echo_json(report.to_dict())
        return
    click.echo(f"{report.pairs} pairs; p of Williams' test against {report.against}")
    echo_columns(
        ["set-up", "Pearson", "Spearman", "p"],
        [
            [
                one.name,
                f"{one.correlation.pearson:.3f}",
                f"{one.correlation.spearman:.3f}",
                f"{one.comparison.p:.2g}" if one.comparison else "",
            ]
            for one in report.setups
        ],
    )
