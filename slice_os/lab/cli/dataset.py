"""The verb dataset: building sets to evaluate on."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slice_os.cli.log import text_bar
from slice_os.cli.options import POSITIVE, json_option
from slice_os.cli.output import REJECTED, counted, echo_json
from slice_os.lab.cli import PATH, count_option, path_option

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.group(
    "dataset",
    epilog="""\b
Example:
  slice-os dataset build-context stsb.tsv context.jsonl
""",
)
def dataset_command() -> None:
    """Build sets to evaluate on (docs/evaluation.md)."""


@dataset_command.command(
    "build-context",
    epilog="""\b
Examples:
  export OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_MODEL=my-model
  slice-os dataset build-context stsb.tsv context.jsonl --annotate ann.csv --annotate bob.csv
  slice-os evaluate context context.jsonl
""",
)
@click.argument("pairs", type=PATH)
@click.argument("out", type=PATH)
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
@path_option(
    "--prompt",
    help="What to ask, with {paraphrase}, and perhaps {phrase}, {letter}, {low} and {high}.  "
    "[default: as SLICE asked]",
)
@path_option(
    "--annotate",
    "sheets",
    multiple=True,
    help="A .csv for people to confirm the similarity, one a person; read back if it is there.",
)
@count_option("--attempts", 1, "Requests for each passage until one passes the check.")
@count_option("--workers", 4, "Requests at the same time.")
@click.option(
    "--timeout",
    type=POSITIVE,
    default=60.0,
    show_default=True,
    help="Seconds to wait for an answer.",
)
@json_option
def build_context_command(
    pairs: Path,
    out: Path,
    model: str | None,
    base_url: str | None,
    prompt: Path | None,
    sheets: tuple[Path, ...],
    timeout: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Have a language model write a passage around each paraphrase of PAIRS, into OUT.

    PAIRS is a .csv, .tsv or .jsonl with phrase, paraphrase and score. A passage counts only if it
    says the paraphrase word for word. The same command goes on with a run that was broken off; the
    key is read from OPENAI_API_KEY. The exit code is 3 if a pair was left without a passage.

    With --annotate, the passages are also written to a sheet. Once people wrote yes or no into its
    column confirmed, the same command asks no model: it writes the rows that all sheets confirm to
    OUT's name with .confirmed.jsonl.
    """
    from slice_os.corpus.data_files import numbered_lines
    from slice_os.lab.evaluate.build_context import build_context, read_sheets, write_sheet
    from slice_os.lab.evaluate.language_model import Endpoint

    if sheets and all(sheet.exists() for sheet in sheets):
        kept = out.with_suffix(".confirmed.jsonl")
        answers = read_sheets(out, sheets, kept)
        if as_json:
            echo_json(asdict(answers))
        else:
            click.echo(
                f"{kept}: {counted(answers.confirmed, 'row')} confirmed; "
                f"{answers.refused} refused, {answers.unanswered} not answered by all."
            )
        return
    prompt_text = "\n".join(line for _, line in numbered_lines(prompt)) if prompt else None
    endpoint = Endpoint(base_url, model, timeout=timeout)
    with text_bar() as bar:

        def show(done: int, count: int, failures: Mapping[str, int]) -> None:
            bar(f"{sum(failures.values())} failed", done, count)

        report = build_context(pairs, out, endpoint, prompt=prompt_text, progress=show, **options)
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
