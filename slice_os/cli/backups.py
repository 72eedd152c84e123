"""The verbs backup and restore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slice_os.cli.options import index_option, json_option
from slice_os.cli.output import counted, echo_json, progress_bar

if TYPE_CHECKING:
    from slice_os.storage.contract import IndexStatus


@click.command(
    "backup",
    epilog="""\b
Examples:
  slice-os backup backups/monday.slice --index demo.slice
  slice-os search "wants to cancel" --index backups/monday.slice
""",
)
@click.argument("to", type=click.Path(path_type=Path))
@index_option
@click.option(
    "--link",
    is_flag=True,
    help="Share files with the index by hard links: no room is taken, and a failing disk takes "
    "both.",
)
@json_option
def backup_command(to: Path, location: str, link: bool, as_json: bool) -> None:
    """Copy an index in a folder to a new folder, TO.

    The generation that is live; it may be searched and written to meanwhile. The copy is checked,
    and is an index itself. Broken off, it leaves TO.part, and the same command goes on from there.
    An index in a cluster is backed up by the cluster (docs/operations.md).
    """
    from slice_os import backup as copy

    _run(lambda tell: copy(location, to, link=link, on_progress=tell), "Backed up", as_json)


@click.command(
    "restore",
    epilog="""\b
Examples:
  slice-os restore backups/monday.slice --index demo.slice
  slice-os restore backups/monday.slice --index demo.slice --overwrite
""",
)
@click.argument("backup", type=click.Path(path_type=Path))
@index_option
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the index that is there, in one step at the end; searches go on.",
)
@json_option
def restore_command(backup: Path, location: str, overwrite: bool, as_json: bool) -> None:
    """Make an index in a folder of a backup.

    BACKUP is checked first, and stays as it is.
    """
    from slice_os import restore as put_back

    _run(
        lambda tell: put_back(backup, location, overwrite=overwrite, on_progress=tell),
        "Restored",
        as_json,
    )


def _run(
    work: Callable[[Callable[[float], object]], IndexStatus], done: str, as_json: bool
) -> None:
    with progress_bar(1) as bar:
        bar.set_description_str("copying", refresh=False)
        state = work(lambda share: bar.update(max(share - bar.n, 0)))
    if as_json:
        echo_json(state.to_dict())
    else:
        click.echo(
            f"{done}: {state.location}, {counted(state.documents, 'document')}, "
            f"{counted(state.passages, 'passage')}, {state.bytes:,} bytes."
        )
