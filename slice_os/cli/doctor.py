"""The verbs doctor and check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from slice_os.cli.log import share_bar
from slice_os.cli.options import encoder_option, index_option, json_option
from slice_os.cli.output import echo_json, echo_table, plain

if TYPE_CHECKING:
    from slice_os.storage.findings import Diagnosis

MARKS = {
    "ok": ("ok", "green"),
    "notice": ("notice", "cyan"),
    "warning": ("warning", "yellow"),
    "error": ("ERROR", "red"),
}


@click.command(
    "doctor",
    epilog="""\b
Examples:
  slice-os doctor --index demo.slice --deep
  slice-os doctor --index https://host:9200/calls
  slice-os doctor --index https://host:9200          # the cluster alone
""",
)
@index_option
@encoder_option
@click.option(
    "--deep",
    is_flag=True,
    help="Check all that is stored: files against checksums, a cluster's spans against words.",
)
@click.option(
    "--repair",
    is_flag=True,
    help="Repair what can be: encode again what damaged files of a folder held, rebuild a "
    "cluster's spans from its words.",
)
@json_option
def doctor_command(
    location: str, encoder: str | None, deep: bool, repair: bool, as_json: bool
) -> None:
    """Examine an index and its cluster: what is wrong, and what to do about it.

    Nothing is changed without --repair. The exit code is 1 if a finding is an error.
    """
    from slice_os.operate.doctor import doctor as examine

    diagnosis = examine(location, encoder=encoder, deep=deep, repair=repair)
    _echo(diagnosis, as_json)
    if not diagnosis.healthy:
        raise click.exceptions.Exit(1)


@click.command(
    "check",
    epilog="""\b
Examples:
  slice-os check --index demo.slice
  slice-os check --index https://host:9200/calls --sample 1000
  slice-os check --index https://host:9200/calls --all --json
""",
)
@index_option
@click.option(
    "--sample",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Documents of a cluster to look at, drawn at random.",
)
@click.option("--all", "everything", is_flag=True, help="Look at all documents of a cluster.")
@json_option
def check_command(location: str, sample: int, everything: bool, as_json: bool) -> None:
    """Prove that an index holds what was written to it.

    Nothing is changed. Of a folder everything is compared with its hash: segments, texts, offsets,
    metadata, postings and the database's file; of an index in a cluster, a sample of documents.
    What is damaged is named, with what to run; the exit code is then 3.
    """
    from slice_os import check as check_index

    with share_bar("checking") as tell:
        diagnosis = check_index(location, sample=None if everything else sample, on_progress=tell)
    _echo(diagnosis, as_json)
    if not diagnosis.healthy:
        raise click.exceptions.Exit(3)


def _echo(diagnosis: Diagnosis, as_json: bool) -> None:
    if as_json:
        echo_json(diagnosis.to_dict())
    else:
        echo_table(list(_rows(diagnosis.facts)))
        click.echo()
        for finding in diagnosis.findings:
            mark, colour = MARKS[finding.severity]
            advice = f": {finding.advice}" if finding.advice else ""
            end = "" if finding.what.endswith(".") or advice else "."
            line = plain(f"{finding.what}{end}{advice}")
            click.echo(f"{click.style(f'{mark:<7}', fg=colour, bold=True)}  {line}")


def _rows(facts: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the rows of the table, one a fact."""
    for name, value in facts.items():
        if name == "bytes":
            yield name, f"{value:,}"
        elif name == "weights_hash":
            yield name, value[:12]
        else:
            shown = ", ".join(value) if isinstance(value, list) else value
            shown = f"{shown:,}" if isinstance(shown, int) else shown
            yield name.replace("_", " "), shown
