"""The verbs serve and mcp."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import click

from slice_os.cli.log import say, server_log
from slice_os.cli.options import an_index, log_option, model_options, record_options
from slice_os.cli.output import plain
from slice_os.encoders.judge import ENGLISH
from slice_os.errors import QueryError
from slice_os.options import ServeOptions

NETWORK = (
    *("host", "port", "allow_hosts", "max_body", "max_phrases", "max_characters", "max_size"),
    "max_seconds",
)
"""The options of a server that one for agents has, too."""


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
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@log_option
def serve_command(
    location: dict[str, str],
    opens: bool,
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

    with server_log():
        serve(
            location, encoder=encoder, device=device, threads=threads, judge=judge or ENGLISH,
            on_ready=partial(_ready, location, options["host"], opens), **options,
        )  # fmt: skip


@click.command(
    "mcp",
    epilog="""\b
Examples:
  slice-os mcp --index demo.slice
  slice-os mcp --index calls=calls.slice --index laws=laws.slice --http --port 8081
  claude mcp add calls -- slice-os mcp --index /data/calls.slice
""",
)
@indexes_option
@model_options
@click.option("--http", is_flag=True, help="Streamable HTTP at /mcp, in place of stdin and stdout.")
@record_options(ServeOptions, *NETWORK)
@log_option
def mcp_command(
    location: dict[str, str],
    encoder: str | None,
    device: str,
    threads: int | None,
    judge: str | None,
    http: bool,
    **options: Any,
) -> None:
    """Give agents tools over the Model Context Protocol: search, mine, read, list, status.

    Answers hold a few words with their offsets and degrees, as many as fit into max_tokens, and say
    what was left out (docs/mcp.md). --host, --port and --allow-host count with --http.
    """
    from slice_os import serve_mcp

    with server_log():
        serve_mcp(
            location, http=http, encoder=encoder, device=device, threads=threads,
            judge=judge or ENGLISH, on_ready=partial(_ready, location, options["host"], False),
            **options,
        )  # fmt: skip


def _ready(location: dict[str, str], host: str, opens: bool, url: str) -> None:
    from slice_os.server.process import is_local

    click.echo(f"{', '.join(map(plain, location))}: {url}")
    if not is_local(host):
        say(
            "Requests and the token are not encrypted here: put a proxy with TLS before it "
            "(docs/server.md)."
        )
    if opens:
        click.launch(url)
