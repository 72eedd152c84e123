"""The verbs list, show, status and delete."""

from __future__ import annotations

import click

from slice_os.answers import document_list
from slice_os.cli.log import say
from slice_os.cli.options import (
    context_option,
    filter_option,
    index_option,
    json_option,
    lines_option,
    paging_options,
)
from slice_os.cli.output import (
    REJECTED,
    counted,
    echo_columns,
    echo_json,
    echo_table,
    mark_in,
    plain,
    shorten,
)


@click.command("status", epilog="\b\nExample:\n  slice-os status --index demo.slice --json\n")
@index_option
@json_option
def status_command(location: str, as_json: bool) -> None:
    """Show the size and state of an index."""
    from slice_os import open as open_index

    with open_index(location) as opened_index:
        state = opened_index.status()
    if as_json:
        echo_json(state.to_dict())
        return
    echo_table(
        [
            ("index", f"{state.location} ({state.backend})"),
            (
                "encoder",
                f"{state.meta.encoder} (weights {state.meta.weights_hash[:12]}, "
                f"{state.meta.dimension} dimensions)",
            ),
            ("documents", state.documents),
            ("passages", state.passages),
            ("words", state.words),
            ("bytes", state.bytes),
            *((name.replace("_", " "), _told(value)) for name, value in state.details.items()),
        ]
    )


def _told(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return ", ".join(f"{name} = {folder}" if name else folder for name, folder in value.items())


@click.command(
    "delete",
    epilog="""\b
Examples:
  slice-os delete conversations/0012.txt --index demo.slice
  slice-os delete --filter "year<2020" --yes --index demo.slice
""",
)
@click.argument("documents", nargs=-1)
@index_option
@filter_option
@click.option("--yes", is_flag=True, help="Do not ask before deleting by filter.")
@json_option
def delete_command(
    documents: tuple[str, ...], location: str, filters: tuple[str, ...], yes: bool, as_json: bool
) -> None:
    """Delete documents by id, or those that meet a filter."""
    from slice_os import open as open_index

    if filters and not yes:
        click.confirm(f"Delete every document with {' and '.join(filters)}?", abort=True, err=True)
    with open_index(location) as opened_index:
        deleted = opened_index.delete(documents, filters=filters)
    if as_json:
        echo_json({"index": location, "deleted": deleted})
    else:
        click.echo(f"{counted(deleted, 'document')} deleted.")
    missing = 0 if filters else len(set(documents)) - deleted
    if missing:
        say(f"{counted(missing, 'id')} not in the index.")
        raise click.exceptions.Exit(REJECTED)


WIDTH = 60


def _place(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """Return the first character of OFFSET or START-END, and the one past the last."""
    if value is None:
        return None
    start, _, end = value.partition("-")
    if not start.isdecimal() or not (end or start).isdecimal():
        raise click.BadParameter(f"{value!r} is no offset: write OFFSET or START-END.")
    return int(start), int(end or start)


@click.command(
    "list",
    epilog="""\b
Examples:
  slice-os list --index demo.slice
  slice-os list --filter "year>=2015" --size 1000 --nl --index demo.slice
""",
)
@index_option
@filter_option
@paging_options("Documents")
@json_option
@lines_option
def list_command(
    location: str,
    filters: tuple[str, ...],
    size: int,
    offset: int,
    as_json: bool,
    as_lines: bool,
) -> None:
    """List documents: their ids, words and titles, in the order of the ids."""
    from slice_os import open as open_index

    with open_index(location) as index:
        documents = index.list(filters=filters, size=size + 1, offset=offset)
    shown, more = documents[:size], len(documents) > size
    if as_json:
        echo_json(document_list(documents, size))
        return
    if as_lines:
        for document in shown:
            echo_json(document.to_dict(), indent=None)
    elif shown:
        echo_columns(
            ["document", "words", "title"],
            [
                [plain(info.document), f"{info.words:,}", shorten(info.title, WIDTH)]
                for info in shown
            ],
            left=(0, 2),
        )
    else:
        click.echo("No documents.", err=True)
    if more:
        count = counted(len(shown), "document")
        click.echo(f"{count} shown, there are more: --offset {offset + size}.", err=True)


@click.command(
    "show",
    epilog="""\b
Examples:
  slice-os show conversations/0012.txt --index demo.slice
  slice-os show conversations/0012.txt --at 1200 --context 2 --index demo.slice
  slice-os show conversations/0012.txt --at 1200-1214 --index demo.slice    # as 'mine' prints it
""",
)
@click.argument("document")
@index_option
@click.option(
    "--at",
    callback=_place,
    metavar="OFFSET",
    help="Show the passage at this offset, or at START-END, which is then marked.",
)
@context_option(1, help="With --at: passages to show before and after it.")
@json_option
def show_command(
    document: str, location: str, at: tuple[int, int] | None, context: int, as_json: bool
) -> None:
    """Show a document's text, or the passages around an offset.

    Offsets count characters of the document, from 0. The text is what the index holds: white space
    between passages is shown as line ends.
    """
    from slice_os import open as open_index

    with open_index(location) as index:
        excerpt = index.show(document, at=at and at[0], context=context)
    if as_json:
        echo_json(excerpt.to_dict())
    elif at and at[0] < at[1]:
        click.echo(mark_in(excerpt, *at))
    else:
        click.echo(plain(excerpt.text))
