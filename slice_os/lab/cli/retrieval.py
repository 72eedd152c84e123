"""The verbs evaluate retrieval and evaluate spans, which need an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slice_os.cli.calibrate import degree_option, rescore_option, warn_of_missing
from slice_os.cli.log import share_bar, text_bar
from slice_os.cli.options import (
    device_option,
    encoder_option,
    index_options,
    json_option,
    threads_option,
)
from slice_os.cli.output import counted, echo_columns, echo_json
from slice_os.lab.cli import SIGNIFICANT, decimals, file_argument, folder_argument, path_option

if TYPE_CHECKING:
    from slice_os.lab.evaluate.metrics import RetrievalReport


@click.command(
    "retrieval",
    epilog="""\b
Examples:
  slice-os evaluate retrieval scifact/
  slice-os evaluate retrieval scifact/ --index scifact.slice --output results/ \\
    --setting lexical --setting hybrid:saturation:0.3 --setting dense:all-lengths
  slice-os evaluate retrieval fiqa/ --index https://host:9200/fiqa --split dev --json
  slice-os evaluate retrieval cisi/ --setting dense --run other.run --baseline other.run
""",
)
@folder_argument
@click.option(
    "--index",
    metavar="LOCATION",
    help="Where the collection is indexed, or was: a folder, or https://host:9200/name.  "
    "[default: one that is removed afterwards]",
)
@click.option("--update", is_flag=True, help="Add what an existing index lacks.")
@encoder_option
@device_option
@threads_option
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="MODE[:FUSION][:WEIGHT][:late=SHARE][:all-lengths]",
    help="A search to measure; may be repeated.  [default: lexical, dense and eleven more]",
)
@path_option(
    "--run",
    "runs",
    multiple=True,
    help="A TREC run file to measure beside them; may be repeated.",
)
@click.option(
    "--baseline",
    metavar="NAME",
    help="The setting or run file to compare the others with.  [default: the first]",
)
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="A measure of ir_measures; may be repeated.  [default: nDCG@10, MAP, MRR, Recall@100, "
    "Success@1]",
)
@click.option(
    "--depth", default=100, show_default=True, metavar="N", help="Documents in a ranking."
)
@click.option("--split", metavar="NAME", help="Which qrels of a BEIR folder.  [default: test]")
@path_option(
    "--output",
    metavar="FOLDER",
    help="Write a run file for each setting, per_query.tsv and report.json.",
)
@json_option
def retrieval_command(
    folder: Path,
    settings: tuple[str, ...],
    measures: tuple[str, ...],
    runs: tuple[Path, ...],
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure how well searches rank a test collection (docs/evaluation.md).

    FOLDER is in the form of BEIR, TREC or SMART. Run files without a setting are measured alone.
    Needs the extra 'evaluate'.
    """
    from slice_os.lab.evaluate.metrics import DEFAULT_MEASURES
    from slice_os.lab.evaluate.retrieval import evaluate_retrieval
    from slice_os.lab.evaluate.search_settings import SETTINGS

    with text_bar() as show:
        report = evaluate_retrieval(
            folder,
            settings=settings or (() if runs else SETTINGS),
            measures=measures or DEFAULT_MEASURES,
            runs=runs,
            output=output,
            progress=show,
            **options,
        )
    for warning in report.warnings:
        click.echo(warning, err=True)
    if as_json:
        echo_json(report.to_dict())
    else:
        _echo_report(report)
        if output is not None:
            click.echo(f"{counted(len(report.files), 'file')} in {output}.", err=True)


def _echo_report(report: RetrievalReport) -> None:
    queries = counted(report.queries, "query", "queries")
    click.echo(f"{report.collection}: {queries}, {counted(report.documents, 'document')}.")
    width = max(map(len, [*report.systems, "setting"]))
    measures = next(iter(report.systems.values())).means
    click.echo("  ".join([f"{'setting':<{width}}", *(f"{name:>8} " for name in measures)]).rstrip())
    differing = {
        (comparison.system, comparison.measure)
        for comparison in report.comparisons
        if comparison.randomisation_holm < SIGNIFICANT
    }
    for system, result in report.systems.items():
        cells = [
            f"{value:>{max(len(name), 8)}.4f}{'*' if (system, name) in differing else ' '}"
            for name, value in result.means.items()
        ]
        missed = f"  {result.missed} missed" if result.missed else ""
        click.echo("  ".join([f"{system:<{width}}", *cells]).rstrip() + missed)
    if not report.comparisons:
        return
    if differing:
        click.echo(f"* differs from {report.baseline}: p < {SIGNIFICANT}, randomisation test, Holm")
    first = next(iter(measures))
    click.echo(f"\n{first} less that of {report.baseline}, with p-values, as they are and by Holm")
    click.echo(f"{'':<{width}}  difference  t-test    Holm  randomisation    Holm")
    for row in report.comparisons:
        if row.measure == first:
            click.echo(
                f"{row.system:<{width}}  {row.difference:>+10.4f}  {_p(row.t_test)}  "
                f"{_p(row.t_test_holm)}  {_p(row.randomisation):>13}  {_p(row.randomisation_holm)}"
            )


def _p(value: float) -> str:
    return "<.0001" if value < 0.0001 else f"{value:.4f}"


@click.command(
    "spans",
    epilog="""\b
Examples:
  slice-os evaluate spans gold.jsonl --index demo.slice
  slice-os evaluate spans gold.csv --index demo.slice --no-rescore --json
""",
)
@file_argument
@index_options
@degree_option
@rescore_option
@json_option
def spans_command(
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
        share_bar("mining") as show,
    ):
        report = evaluate_spans(file, index, min_degree=min_degree, rescore=rescore, progress=show)
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
                f"{row.degree:.2f}",
                *decimals(row.precision, row.recall, row.f1),
                f"{row.matches:,}",
            ]
            for row in report.thresholds
        ],
    )
    if report.unjudged:
        click.echo(f"Left out, in documents that nobody judged: {report.unjudged:,}.", err=True)
