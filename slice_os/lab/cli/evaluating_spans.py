"""The verb evaluate spans."""

from __future__ import annotations

from pathlib import Path

import click

from slice_os.cli.calibrate import degree_option, mining_share, rescore_option, warn_of_missing
from slice_os.cli.options import index_options, json_option
from slice_os.cli.output import counted, echo_columns, echo_json


@click.command(
    epilog="""\b
Examples:
  slice-os evaluate spans gold.jsonl --index demo.slice
  slice-os evaluate spans gold.csv --index demo.slice --no-rescore --json
"""
)
@click.argument("file", type=click.Path(path_type=Path))
@index_options
@degree_option
@rescore_option
@json_option
def spans(
    file: Path,
    location: str,
    encoder: str | None,
    device: str,
    threads: int | None,
    min_degree: float,
    rescore: bool,
    as_json: bool,
) -> None:
    """Compare what mining finds with spans that people marked.

    FILE is a .jsonl, .csv or .tsv with query, document, start and end (characters of the document,
    half-open). Matches in documents that it does not name are left out.
    """
    from slice_os import open as open_index
    from slice_os.calibration.gold import evaluate_spans

    with (
        open_index(location, encoder=encoder, device=device, threads=threads) as index,
        mining_share() as told,
    ):
        report = evaluate_spans(file, index, min_degree=min_degree, rescore=rescore, progress=told)
    warn_of_missing(report.missing)
    if as_json:
        echo_json(report.to_dict())
        return
    click.echo(
        f"{counted(report.gold, 'span')} in {counted(report.documents, 'document')}: "
        f"best-span F1 {report.best_span_f1:.3f}, overlap {report.overlap:.3f}, average precision "
        f"{report.average_precision:.3f}"
    )
    echo_columns(
        ["degree", "precision", "recall", "F1", "matches"],
        [
            [
                f"{one.degree:.2f}",
                f"{one.precision:.3f}",
                f"{one.recall:.3f}",
                f"{one.f1:.3f}",
                f"{one.matches:,}",
            ]
            for one in report.thresholds
        ],
    )
    if report.unjudged:
        click.echo(f"Left out, in documents that nobody judged: {report.unjudged:,}.", err=True)
