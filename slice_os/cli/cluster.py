"""The verbs for clusters: templates, query and connector."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

import click

from slice_os.cli.options import (
    an_index,
    cluster_options,
    encoder_option,
    index_option,
    json_option,
    record_options,
)
from slice_os.cli.output import echo_json, echo_table
from slice_os.options import RequestOptions, fields
from slice_os.query import Dialect, VectorType

if TYPE_CHECKING:
    from slice_os import ClusterSettings

NAME = "opensearch/passages"
REQUEST = [field.name for field in fields(RequestOptions) if field.name != "all_lengths"]


@click.group(
    "templates",
    epilog="""\b
Examples:
  slice-os templates list
  slice-os templates show --alias calls --shards 3 > calls.json
  slice-os templates apply --index https://host:9200/calls
""",
)
def templates_command() -> None:
    """Index templates: the JSON that a cluster makes an index for slice-os from."""


@templates_command.command("list", epilog="\b\nExample:\n  slice-os templates list --json\n")
@json_option
def list_command(as_json: bool) -> None:
    """List the templates that come with slice-os, and their files."""
    from slice_os import list_templates

    templates = list_templates()
    if as_json:
        echo_json(templates)
    else:
        echo_table(list(templates.items()))


@templates_command.command(
    "show", epilog="\b\nExample:\n  slice-os templates show --dimensions 192 --shards 3\n"
)
@click.argument("name", default=NAME)
@click.option(
    "--alias", default="passages", show_default=True, help="The alias that applications name."
)
@encoder_option
@cluster_options
def show_command(name: str, alias: str, encoder: str | None, cluster: ClusterSettings) -> None:
    """Print a template, rendered: the body of PUT _index_template/NAME."""
    from slice_os import show_template

    echo_json(show_template(name, alias=alias, encoder=encoder, cluster=cluster))


@templates_command.command(
    "apply",
    epilog="\b\nExample:\n  slice-os templates apply --index https://host:9200/calls --shards 3\n",
)
@click.argument("name", required=False)
@index_option
@encoder_option
@cluster_options
def apply_command(
    name: str | None, location: str, encoder: str | None, cluster: ClusterSettings
) -> None:
    """Put a template into a cluster: it makes the indexes that are created from then on.

    Without NAME it is the one for the cluster's kind of server.
    """
    from slice_os import apply_template

    body = apply_template(location, name, encoder=encoder, cluster=cluster)
    click.echo(f"Indexes called {', '.join(body['index_patterns'])} are made by it from now on.")


@click.command(
    "query",
    epilog="""\b
Examples:
  slice-os query "wants to cancel" --index https://host:9200/calls --curl
  slice-os query "wants to cancel" --mode dense --size 3 > body.json
  slice-os query "wants to cancel" --mode mining --min-degree 0.85
""",
)
@click.argument("text")
@an_index(
    metavar="URL",
    help="The index that the request must fit; default: one with the default settings.",
)
@encoder_option
@click.option(
    "--dialect",
    type=click.Choice(get_args(Dialect)),
    default="opensearch",
    show_default=True,
    help="Without an index: the server that the request is for.",
)
@record_options(RequestOptions, *REQUEST)
@click.option("--curl", "as_command", is_flag=True, help="Print the whole curl command.")
def query_command(
    text: str, location: str | None, filters: tuple[str, ...], as_command: bool, **options: Any
) -> None:
    """Print the request that a search sends, for curl or any client of the cluster.

    Where hybrid takes two searches, they are printed as JSON lines for _msearch.

    Its hits' inner hits hold the matched spans and their in-context degrees; rescoring and the
    scoring over all spans and words are what 'slice-os search' adds.
    """
    from slice_os import build_request
    from slice_os.engine.search_request import as_curl
    from slice_os.text.filters import parse_filters

    body = build_request(text, location, filters=parse_filters(filters), **options)
    if as_command:
        click.echo(as_curl(body, location))
    else:
        for part in body if isinstance(body, list) else [body]:
            echo_json(part, indent=None)


@click.command(
    "connector",
    epilog="\b\nExample:\n  slice-os connector --url http://search-encoder:8080\n",
)
@click.option(
    "--url",
    required=True,
    help="Where 'slice-os serve' listens, as the nodes of the cluster reach it.",
)
@encoder_option
@click.option(
    "--vector-type",
    type=click.Choice(get_args(VectorType)),
    default="byte",
    show_default=True,
    help="That of the index.",
)
@click.option("--dimensions", type=int, help="Those of the index; default: the encoder's.")
@json_option
def connector_command(
    url: str,
    encoder: str | None,
    vector_type: VectorType,
    dimensions: int | None,
    as_json: bool,
) -> None:
    """Print what lets 'neural' clauses of OpenSearch ask 'slice-os serve' for vectors.

    They are requests for ML Commons, to be sent in order: settings, a connector, a model, and a
    search to try. What is in capitals is filled in from the answers before.
    """
    from slice_os import encoder_info
    from slice_os.query import connector

    info = encoder_info(encoder)
    requests = connector(
        url, model=info.name, dimensions=dimensions or info.dimension, vector_type=vector_type
    )
    if as_json:
        echo_json([{"request": request, "body": body} for request, body in requests])
        return
    for request, body in requests:
        click.echo(f"{request}\n{json.dumps(body, indent=2)}\n")
