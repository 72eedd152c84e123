"""The verb serve."""

from __future__ import annotations

import os
from typing import Any

import click

from slice_os.cli.options import an_index, log_option, model_options, record_options
from slice_os.cli.output import plain, say, server_log
from slice_os.encoders.judges import ENGLISH
from slice_os.errors import QueryError
from slice_os.options import ServeOptions


class _Locations(click.types.StringParamType):
    """Locations, of which the environment may hold several, one a line."""

    envvar_list_splitter = "\n"


indexes_option = an_index(
    required=True,
    multiple=True,
    type=_Locations(),
    callback=lambda context, option, value: named_locations(value),
    metavar="[NAME=]LOCATION",
    help="An index: a folder, or https://host:9200/name in a cluster. May be repeated, each with a "
    "name of its own; the first is asked by default.",
)


def named_locations(given: tuple[str, ...]) -> dict[str, str]:
    """Return locations by name: NAME=LOCATION, else the last part of the location is its name."""
    named: dict[str, str] = {}
    for text in given:
        name, separator, location = text.partition("=")
        if not separator or "/" in name or os.path.exists(text):  # noqa: PTH110
            location = text
            name = text.rstrip("/").rpartition("/")[2].removesuffix(".slice")
        if name in named:
            raise QueryError(
                f"Two indexes are called {name!r}: write --index NAME=LOCATION, each another name."
            )
        named[name] = location
    return named


@click.command(
    "serve",
    epilog="""\b
Examples:
  slice-os serve --index demo.slice
  slice-os serve --index calls=calls.slice --index laws=https://host:9200/laws --workspace taught/
  SLICE_OS_TOKEN=$(openssl rand -hex 32) slice-os serve --host 0.0.0.0 --index demo.slice
  curl -H 'Content-Type: application/json' -d '{"query": "wants to cancel"}' \\
    http://127.0.0.1:8080/api/search
""",
)
@indexes_option
@model_options
@record_options(ServeOptions)
@log_option
def serve_command(
    location: dict[str, str],
    encoder: str | None,
    device: str,
    threads: int | None,
    judge: str | None,
    **options: Any,
) -> None:
    """Answer over HTTP: a page for people, an API for programs.

    The page is at /, the API below /api, described by /openapi.json and docs/server.md;
    /v1/embeddings has OpenAI's form, /metrics Prometheus'. Nothing is written but to --workspace.
    Ctrl-C and SIGTERM finish what runs; a second Ctrl-C does not wait.
    """
    from slice_os import serve
    from slice_os.server.run import is_local

    def ready(url: str) -> None:
        click.echo(f"{', '.join(map(plain, location))}: {url}")
        if not is_local(options["host"]):
            say(
                "Requests and the token are not encrypted here: put a proxy with TLS before it "
                "(docs/server.md)."
            )

    with server_log():
        serve(
            location, encoder=encoder, device=device, threads=threads, judge=judge or ENGLISH,
            on_ready=ready, **options,
        )  # fmt: skip
