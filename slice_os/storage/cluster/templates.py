"""Index templates for a cluster: the JSON files, rendered for an encoder, and put there."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from slice_os.encoders import encoder_info
from slice_os.errors import LocationError
from slice_os.storage.cluster.dialect import Dialect, dialect_of, load_dialect
from slice_os.storage.cluster.settings import DIALECTS, ClusterSettings, Layout
from slice_os.storage.contract import IndexMeta


def list_templates() -> dict[str, str]:
    """Return the templates that come with slice-os: name -> the file it is."""
    root = files("slice_os.index_templates")
    return {
        f"{folder}/{Path(file.name).stem}": str(file)
        for folder in DIALECTS
        for file in sorted(root.joinpath(folder).iterdir(), key=lambda one: one.name)
        if file.name.endswith(".json")
    }


def show_template(
    name: str = "opensearch/passages",
    *,
    alias: str = "passages",
    encoder: str | Path | None = None,
    cluster: ClusterSettings | None = None,
) -> dict[str, Any]:
    """Return a template for the generations of `alias`, as an encoder needs it.

    It is the body of ``PUT _index_template/NAME``; its ``template`` that of ``PUT NAME-000001``.

    Raises:
        LocationError: there is no such template, or a setting is out of its range.
    """
    if name not in list_templates():
        known = ", ".join(list_templates())
        raise LocationError(f"There is no template {name!r}: choose {known}.")
    return _rendered(load_dialect(name.partition("/")[0])(), alias, encoder, cluster)


def _rendered(
    dialect: Dialect,
    alias: str,
    encoder: str | Path | None,
    cluster: ClusterSettings | None,
) -> dict[str, Any]:
    from slice_os.storage.cluster.settings import parse_location
    from slice_os.storage.cluster.template import render_template

    parse_location(f"http://localhost/{alias}")  # refuses what names no index
    info = encoder_info(encoder)
    meta = IndexMeta(info.name, info.weights_hash, info.dimension, phrase_head=info.phrase_head)
    return render_template(alias, meta, Layout.of(cluster or {}), dialect)


def apply_template(
    location: str,
    name: str | None = None,
    *,
    encoder: str | Path | None = None,
    cluster: ClusterSettings | None = None,
) -> dict[str, Any]:
    """Put a template into the cluster of a location, under the location's name; return its body.

    Indexes that match it are made by it from then on: those that exist stay as they are. Without a
    name it is the one for the cluster's kind of server.

    Raises:
        LocationError: there is no such template, it is for another kind of server, or a setting is
            out of its range.
    """
    from slice_os.storage.cluster.client import Client
    from slice_os.storage.cluster.settings import parse_location

    address = parse_location(location)
    with Client(address) as client:
        dialect = dialect_of(client)
        own = dialect.template.removesuffix(".json")
        if name is not None and name.partition("/")[0] != dialect.name:
            raise LocationError(
                f"The template {name} is not for {dialect.title}, which answers at {address.url}: "
                f"choose {own}."
            )
        body = _rendered(dialect, address.name, encoder, cluster)
        client.request("PUT", f"/_index_template/{address.name}", body)
    return body
