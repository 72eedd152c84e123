"""Index templates: the JSON of index_templates/, rendered for an index, and read back from one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import regex

from slice_os.encoders import encoder_info
from slice_os.errors import LocationError
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import Dialect, dialect_of, load_dialect
from slice_os.storage.cluster.responses import IndexDescription, IndexNotes, nested
from slice_os.storage.cluster.settings import DIALECTS, ClusterSettings, Layout, parse_location
from slice_os.storage.contract import FORMAT, IndexMeta

MOST_WORDS = 150
"""Of a passage: of longer ones too few spans are stored to find it well."""
FIELD_TYPES = (
    "keyword", "text", "boolean", "date", "integer", "long", "float", "double", "ip",
)  # fmt: skip
GENERATION = "{}-{:06d}"
"""Data lives in numbered indexes behind the alias that applications name."""
_DECISIVE: Sequence[tuple[str, Any]] = (
    ("type", "object"), ("space_type", None), ("similarity", None), ("enabled", True),
)  # fmt: skip
"""What a field of a mapping has to have as ours has it, and what it is if it is not said."""
_FIELD_NAME = regex.compile(r"[^\s.*,:\"\\]+(\.[^\s.*,:\"\\]+)*")


def list_templates() -> dict[str, str]:
    """Return the templates that come with slice-os: name -> the file it is."""
    root = files("slice_os.index_templates")
    return {
        f"{folder}/{Path(file.name).stem}": str(file)
        for folder in DIALECTS
        for file in sorted(root.joinpath(folder).iterdir(), key=lambda file: file.name)
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


def apply_template(
    location: str,
    name: str | None = None,
    *,
    encoder: str | Path | None = None,
    cluster: ClusterSettings | None = None,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> dict[str, Any]:
    """Put a template into the cluster of a location, under the location's name; return its body.

    Indexes that match it are made by it from then on: those that exist stay as they are. Without a
    name it is the one for the cluster's kind of server. `credentials` and `client` are those of
    `slice_os.Index`.

    Raises:
        LocationError: there is no such template, it is for another kind of server, or a setting is
            out of its range.
    """
    address = parse_location(location)
    with Client(address, credentials, client) as connected:
        dialect = dialect_of(connected)
        if name is not None and name.partition("/")[0] != dialect.name:
            raise LocationError(
                f"The template {name} is not for {dialect.title}, which answers at {address.url}: "
                f"choose {dialect.template.removesuffix('.json')}."
            )
        body = _rendered(dialect, address.name, encoder, cluster)
        connected.request("PUT", f"/_index_template/{address.name}", body)
    return body


def _rendered(
    dialect: Dialect,
    alias: str,
    encoder: str | Path | None,
    cluster: ClusterSettings | None,
) -> dict[str, Any]:
    parse_location(f"http://localhost/{alias}")  # refuses what names no index
    info = encoder_info(encoder)
    meta = IndexMeta(info.name, info.weights_hash, info.dimension, phrase_head=info.phrase_head)
    return render_template(alias, meta, Layout.of(cluster or {}), dialect)


def load_template(name: str) -> dict[str, Any]:
    """Return a template of index_templates/ as it is in the file."""
    text = files("slice_os.index_templates").joinpath(name).read_text(encoding="utf-8")
    template: dict[str, Any] = json.loads(text)
    return template


def render_template(
    name: str, meta: IndexMeta, settings: Layout, dialect: Dialect
) -> dict[str, Any]:
    """Return the composable index template for the generations of the alias `name`.

    Raises:
        LocationError: the settings are out of their range.
    """
    dimension = settings.dimensions or meta.dimension
    if not 0 < settings.tolerance <= 1:
        raise LocationError(f"The tolerance {settings.tolerance} must be above 0 and at most 1.")
    if not 1 <= dimension <= meta.dimension:
        raise LocationError(
            f"{dimension} dimensions were asked for: the encoder {meta.encoder} has "
            f"{meta.dimension}."
        )
    if meta.passage_words > MOST_WORDS:
        raise LocationError(
            f"Passages of {meta.passage_words} words are too long for a cluster, which stores at "
            f"most 149 spans of each: use at most {MOST_WORDS}."
        )
    dialect.check(settings)
    body = load_template(dialect.template)
    body["index_patterns"] = [f"{name}-0*"]
    body["priority"] += len(name)  # of sales and sales-07 the longer one is meant
    index = body["template"]["settings"]["index"]
    index["number_of_shards"], index["number_of_replicas"] = settings.shards, settings.replicas
    index.update(dialect.settings())
    if settings.codec != "default":
        index["codec"] = settings.codec
    mappings = body["template"]["mappings"]
    mappings["_meta"]["slice_os"] = _describe(meta, settings)
    properties = mappings["properties"]
    for field in ("title", "text"):
        properties[field]["analyzer"] = settings.analyzer
    if settings.fields:
        properties["fields"] = {"properties": _declare(settings.fields)}
    dialect.put_vector(properties["spans"]["properties"]["vector"], dimension, settings)
    return body


def _declare(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the mapping of the fields that users declare."""
    for name, kind in fields.items():
        if kind not in FIELD_TYPES:
            raise LocationError(
                f"The field {name} cannot have the type {kind!r}: choose one of "
                f"{', '.join(FIELD_TYPES)}."
            )
        if not _FIELD_NAME.fullmatch(name):
            raise LocationError(f"{name!r} cannot be the name of a field in a cluster.")
    return {name: {"type": kind} for name, kind in fields.items()}


def _declared(properties: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return the fields that a mapping declares, name -> type: what `_declare` is made from."""
    fields: dict[str, str] = {}
    for name, field in properties.items():
        if "properties" in field:
            fields |= _declared(field["properties"], f"{prefix}{name}.")
        else:
            fields[prefix + name] = field["type"]
    return fields


def _describe(meta: IndexMeta, settings: Layout) -> dict[str, Any]:
    """Return ``_meta.slice_os``; `read_meta` reads it."""
    return {
        "format": FORMAT,
        "encoder": {
            "name": meta.encoder,
            "weights_hash": meta.weights_hash,
            "dimension": meta.dimension,
            "phrase_head": meta.phrase_head,
        },
        "max_words": meta.max_words,
        "passage_words": meta.passage_words,
        "tolerance": settings.tolerance,
        "vector": {
            "type": settings.vector_type,
            "dimension": settings.dimensions or meta.dimension,
        },
        "roots": {},
        "store": meta.store,
    }


def read_meta(
    index: str, description: IndexDescription, dialect: Dialect
) -> tuple[IndexMeta, Layout]:
    """Return what an index's mapping and settings say of it.

    Raises:
        LocationError: the index was not made by slice-os, by a newer one, or was altered by hand.
    """
    mappings, settings = description["mappings"], description["settings"]["index"]
    ours = nested(mappings, "_meta", "slice_os")
    if ours is None:
        raise _foreign(index)
    try:
        if ours["format"] != FORMAT:
            raise LocationError(
                f"The index {index} has format {ours['format']}, this slice-os reads {FORMAT}: "
                "install the slice-os that made it, or index to a new name."
            )
        notes = msgspec.convert(ours, IndexNotes)
        encoder, vector = notes.encoder, notes.vector
        field = mappings["properties"]["spans"]["properties"]["vector"]
        dimension, kind, engine = dialect.read_vector(field)
        meta = IndexMeta(
            encoder.name,
            encoder.weights_hash,
            encoder.dimension,
            notes.max_words,
            notes.passage_words,
            FORMAT,
            notes.store,
            encoder.phrase_head,
        )
        layout = Layout(
            notes.tolerance,
            vector.type,
            None if vector.dimension == meta.dimension else vector.dimension,
            engine,
            settings.get("codec", "default"),
            mappings["properties"]["text"].get("analyzer", "standard"),
            int(settings["number_of_shards"]),
            int({**settings, **notes.loading}["number_of_replicas"]),
            _declared(mappings["properties"].get("fields", {}).get("properties", {})),
        )
        template = load_template(dialect.template)["template"]["mappings"]
        difference = _difference(template["properties"], mappings["properties"])
    except (AttributeError, KeyError, TypeError, ValueError, msgspec.ValidationError) as exc:
        raise LocationError(
            f"The mapping of {index} is not the one that slice-os makes ({exc} is not as it should "
            "be): index to a new name."
        ) from exc
    if (dimension, kind) != (vector.dimension, vector.type):
        raise LocationError(
            f"The mapping of {index} has {kind} vectors of {dimension} dimensions, its _meta "
            f"says {vector.type} of {vector.dimension}: index to a new name."
        )
    if difference or not encoder.weights_hash:
        what = difference or "names no encoder in its _meta"
        raise LocationError(f"The mapping of {index} {what}: index to a new name.")
    return meta, layout


def _difference(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> str:
    """Return how the fields of a mapping differ from those of slice-os, in what answers go by."""
    for name, field in ours.items():
        path, mapped = prefix + name, theirs.get(name)
        if mapped is None:
            return f"lacks the field {path}"
        # A space may stand beside the method or in it.
        mapped = {"space_type": mapped.get("method", {}).get("space_type"), **mapped}
        for key, default in _DECISIVE:
            expected, actual = field.get(key, default), mapped.get(key, default)
            if expected != actual:
                key = key.replace("_", " ")
                return f"has {key} {actual} for the field {path}, not {expected}"
        for inner in ("properties", "fields"):
            if difference := _difference(field.get(inner, {}), mapped.get(inner, {}), f"{path}."):
                return difference
    return ""


def named_index(name: str, indexes: Mapping[str, IndexDescription]) -> tuple[str, IndexDescription]:
    """Return the index that an alias names, of what a cluster describes by that name.

    Raises:
        LocationError: it is no alias, of several, or with a filter or the like.
    """
    if len(indexes) > 1:
        raise LocationError(
            f"The alias {name} names {len(indexes)} indexes ({', '.join(sorted(indexes))}): let it "
            "name one."
        )
    ((index, description),) = indexes.items()
    if index != name:
        alias = description["aliases"].get(name, {})
        if narrow := set(alias) - {"is_write_index", "is_hidden"}:
            raise LocationError(
                f"The alias {name} has a setting that slice-os does not go by "
                f"({', '.join(sorted(narrow))}): make it again without."
            )
        return index, description
    if nested(description["mappings"], "_meta", "slice_os") is None:
        raise _foreign(index)
    if aliases := description["aliases"]:
        raise LocationError(
            f"{index} is one generation of an index: name its alias, {min(aliases)}."
        )
    raise LocationError(
        f"{index} is an index, and slice-os needs an alias of that name on {index}-000001: give "
        "another name."
    )


def _foreign(index: str) -> LocationError:
    return LocationError(
        f"The index {index} was not made by slice-os",
        hint="give another name, and '--from-index' to take its documents over.",
    )
