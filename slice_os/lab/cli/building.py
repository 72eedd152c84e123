"""The verb dataset: building sets to evaluate on."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from slice_os.cli.options import POSITIVE, json_option
from slice_os.cli.output import REJECTED, counted, echo_json

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.group(
    epilog="""\b
Example:
  slice-os dataset build-context stsb.tsv context.jsonl
"""
)
def dataset() -> None:
    """Build sets to evaluate on (docs/evaluation.md)."""


@dataset.command(
    "build-context",
    epilog="""\b
Examples:
  export OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_MODEL=my-model
  slice-os dataset build-context stsb.tsv context.jsonl --annotate ann.csv --annotate bob.csv
  slice-os evaluate context context.jsonl
""",
)
@click.argument("pairs", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--model", envvar="OPENAI_MODEL", show_envvar=True, help="The model's name.")
@click.option(
    "--base-url", envvar="OPENAI_BASE_URL", show_envvar=True, help="An OpenAI-compatible endpoint."
)
@click.option(
    "--words",
    type=click.IntRange(min=1),
    nargs=2,
    help="Minimum and maximum words of a passage.  [default: any]",
)
@click.option(
    "--prompt",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What to ask, with {paraphrase}, and perhaps {phrase}, {letter}, {low} and {high}.",
)
@click.option(
    "--annotate",
    "sheets",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A .csv for people to confirm the similarity, one a person; read back if it is there.",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Requests for each passage until one passes the check.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Requests at the same time.",
)
@click.option(
    "--timeout",
    type=POSITIVE,
    default=60.0,
    show_default=True,
    help="Seconds to wait for an answer.",
)
@json_option
def build_context(
    pairs: Path,
    out: Path,
    model: str | None,
    base_url: str | None,
    words: tuple[int, int] | None,
    prompt: Path | None,
    sheets: tuple[Path, ...],
    attempts: int,
    workers: int,
    timeout: float,
    as_json: bool,
) -> None:
    """Have a language model write a passage around each paraphrase of PAIRS, into OUT.

    PAIRS is a .csv, .tsv or .jsonl with phrase, paraphrase and score. A passage counts only if it
    says the paraphrase word for word. The same command goes on with a run that was broken off; the
    key is read from OPENAI_API_KEY. The exit code is 3 if a pair was left without a passage.

    With --annotate, the passages are also written to a sheet. Once people wrote yes or no into its
    column confirmed, the same command asks no model: it writes the rows that all sheets confirm to
    OUT's name with .confirmed.jsonl.
    """
    from tqdm import tqdm

    from slice_os.calibration.lines import numbered_lines
    from slice_os.lab.evaluate.annotating import read_sheets, write_sheet
    from slice_os.lab.evaluate.building import build_context as build
    from slice_os.lab.evaluate.endpoint import Endpoint

    if sheets and all(sheet.exists() for sheet in sheets):
        kept = out.with_suffix(".confirmed.jsonl")
        found = read_sheets(out, sheets, kept)
        if as_json:
            echo_json(asdict(found))
        else:
            click.echo(
                f"{kept}: {counted(found.confirmed, 'row')} confirmed; {found.refused} refused, "
                f"{found.unanswered} not answered by all."
            )
        return
    asked = "\n".join(line for _, line in numbered_lines(prompt)) if prompt else None
    endpoint = Endpoint(base_url, model, timeout=timeout)
    bar: tqdm[NoReturn] = tqdm(unit="pair", disable=None)

    def show(done: int, count: int, failures: Mapping[str, int]) -> None:
        bar.total = count
        bar.set_postfix_str(f"{sum(failures.values())} failed", refresh=False)
        bar.update(done - bar.n)

    with bar:
        report = build(
            pairs,
            out,
            endpoint,
            prompt=asked,
            words=words,
            attempts=attempts,
            workers=workers,
            progress=show,
        )
    for sheet in sheets:
        if not sheet.exists():
            click.echo(f"{sheet}: {counted(write_sheet(out, sheet), 'row')} to confirm.", err=True)
    if as_json:
        echo_json(asdict(report))
    else:
        click.echo(f"{out}: {counted(report.built, 'passage')} built, {report.known} were there.")
        for reason, count in report.failures.items():
            click.echo(f"Left out, {reason}: {count}.", err=True)
    if report.failures:
        raise click.exceptions.Exit(REJECTED)
