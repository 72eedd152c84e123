"""The verb evaluate retrieval."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from slice_os.cli.options import device_option, encoder_option, json_option, threads_option
from slice_os.cli.output import counted, echo_json

if TYPE_CHECKING:
    from slice_os.lab.evaluate.metrics import RetrievalReport
    from slice_os.lab.evaluate.searching import EvaluationProgress

SIGNIFICANT = 0.05


@click.command(
    epilog="""\b
Examples:
  slice-os evaluate retrieval scifact/
  slice-os evaluate retrieval scifact/ --index scifact.slice --output results/ \\
    --setting lexical --setting hybrid:saturation:0.3 --setting dense:all-lengths
  slice-os evaluate retrieval fiqa/ --index https://host:9200/fiqa --split dev --json
  slice-os evaluate retrieval cisi/ --setting dense --run other.run --baseline other.run
"""
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--index",
    "location",
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
@click.option(
    "--run",
    "runs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
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
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a run file for each setting, per_query.tsv and report.json.",
)
@json_option
def retrieval(
    folder: Path,
    location: str | None,
    update: bool,
    encoder: str | None,
    device: str,
    threads: int | None,
    settings: tuple[str, ...],
    runs: tuple[Path, ...],
    baseline: str | None,
    measures: tuple[str, ...],
    depth: int,
    split: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure how well searches rank a test collection (docs/evaluation.md).

    FOLDER is in the form of BEIR, TREC or SMART. Run files without a setting are measured alone.
    Needs the extra 'evaluate'.
    """
    from tqdm import tqdm

    from slice_os.lab.evaluate.metrics import DEFAULT_MEASURES
    from slice_os.lab.evaluate.retrieval import evaluate_retrieval
    from slice_os.lab.evaluate.searching import SETTINGS

    bar: tqdm[NoReturn] = tqdm(
        delay=1, leave=False, disable=None, bar_format="{desc} {n_fmt}/{total_fmt} |{bar:20}|"
    )

    stage = ""

    def show(progress: EvaluationProgress) -> None:
        nonlocal stage
        if progress.stage != stage:
            stage = progress.stage
            bar.reset(progress.total)
            bar.set_description_str(stage, refresh=False)
        bar.update(progress.done - bar.n)

    with bar:
        report = evaluate_retrieval(
            folder,
            location,
            settings=settings or (() if runs else SETTINGS),
            encoder=encoder,
            device=device,
            threads=threads,
            depth=depth,
            measures=measures or DEFAULT_MEASURES,
            runs=runs,
            baseline=baseline,
            output=output,
            split=split,
            update=update,
            progress=show,
        )
    for warning in report.warnings:
        click.echo(warning, err=True)
    if as_json:
        echo_json(report.to_dict())
    else:
        _echo(report)
        if output is not None:
            click.echo(f"{counted(len(report.files), 'file')} in {output}.", err=True)


def _echo(report: RetrievalReport) -> None:
    queries = counted(report.queries, "query", "queries")
    click.echo(f"{report.collection}: {queries}, {counted(report.documents, 'document')}.")
    width = max(map(len, [*report.systems, "setting"]))
    measures = next(iter(report.systems.values())).means
    click.echo("  ".join([f"{'setting':<{width}}", *(f"{name:>8} " for name in measures)]).rstrip())
    apart = {
        (one.system, one.measure)
        for one in report.comparisons
        if one.randomisation_holm < SIGNIFICANT
    }
    for system, result in report.systems.items():
        cells = [
            f"{value:>{max(len(name), 8)}.4f}{'*' if (system, name) in apart else ' '}"
            for name, value in result.means.items()
        ]
        missed = f"  {result.missed} missed" if result.missed else ""
        click.echo("  ".join([f"{system:<{width}}", *cells]).rstrip() + missed)
    if not report.comparisons:
        return
    if apart:
        click.echo(f"* differs from {report.baseline}: p < {SIGNIFICANT}, randomisation test, Holm")
    first = next(iter(measures))
    click.echo(f"\n{first} less that of {report.baseline}, with p-values, as they are and by Holm")
    click.echo(f"{'':<{width}}  difference  t-test    Holm  randomisation    Holm")
    for one in report.comparisons:
        if one.measure == first:
            click.echo(
                f"{one.system:<{width}}  {one.difference:>+10.4f}  {_p(one.t_test)}  "
                f"{_p(one.t_test_holm)}  {_p(one.randomisation):>13}  {_p(one.randomisation_holm)}"
            )


def _p(value: float) -> str:
    return "<.0001" if value < 0.0001 else f"{value:.4f}"
