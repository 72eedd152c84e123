"""The index template: the JSON of index_templates/, with an index's own values in their places."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import regex

from slice_os.errors import LocationError
from slice_os.storage.cluster.dialect import Dialect
from slice_os.storage.cluster.response_checks import number, typed
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.contract import IndexMeta

FORMAT = 2
"""1: passages could have more spans than the k-NN plugin can derive (`documents.MOST_SPANS`)."""
ADDED: dict[str, Any] = {"tolerance": {"type": "float"}, "source": {"type": "keyword"}}
"""Fields that an index of format 1 may lack."""
MOST_WORDS = 150
"""Of a passage: of longer ones too few spans are stored to find it well."""
FIELD_TYPES = (
    "keyword", "text", "boolean", "date", "integer", "long", "float", "double", "ip",
)  # fmt: skip
_DECISIVE: Sequence[tuple[str, Any]] = (
    ("type", "object"), ("space_type", None), ("similarity", None), ("enabled", True),
)  # fmt: skip
"""What a field of a mapping has to have as ours has it, and what it is if it is not said."""
_FIELD_NAME = regex.compile(r"[^\s.*,:\"\\]+(\.[^\s.*,:\"\\]+)*")
GENERATION = "{}-{:06d}"
"""Data lives in numbered indexes behind the alias that applications name."""


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
    mappings = body["template"]["mappings"]
    mappings["_meta"]["slice_os"] = describe(meta, settings)
    properties = mappings["properties"]
    for field in ("title", "text"):
        properties[field]["analyzer"] = settings.analyzer
    if settings.fields:
        properties["fields"] = {"properties": _typed(settings.fields)}
    dialect.put_vector(properties["spans"]["properties"]["vector"], dimension, settings)
    return body


def _typed(fields: Mapping[str, str]) -> dict[str, Any]:
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


def declared(properties: Mapping[str, Any], inside: str = "") -> dict[str, str]:
    """Return the fields that a mapping declares, name -> type: what `_typed` is made from."""
    found: dict[str, str] = {}
    for name, one in properties.items():
        if "properties" in one:
            found |= declared(one["properties"], f"{inside}{name}.")
        else:
            found[inside + name] = one["type"]
    return found


def describe(meta: IndexMeta, settings: Layout) -> dict[str, Any]:
    """Return ``_meta.slice_os``."""
    dimension = settings.dimensions or meta.dimension
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
        "vector": {"type": settings.vector_type, "dimension": dimension},
        "roots": {},
        "store": meta.store,
    }


def whole_index(index: str, said: dict[str, Any]) -> str:
    """Return what to say of an index that is named where its alias should be."""
    if "slice_os" not in said["mappings"].get("_meta", {}):
        return (
            f"The index {index} was not made by slice-os: give another name, and '--from-index' "
            "to take its documents over."
        )
    if said["aliases"]:
        return f"{index} is one generation of an index: name its alias, {min(said['aliases'])}."
    return (
        f"{index} is an index, and slice-os needs an alias of that name on {index}-000001: give "
        "another name."
    )


def read_meta(
    index: str, mappings: dict[str, Any], settings: dict[str, Any], dialect: Dialect
) -> tuple[IndexMeta, Layout]:
    """Return what an index's mapping and settings (as the cluster answers them) say of it.

    Raises:
        LocationError: the index was not made by slice-os, by a newer one, or was altered by hand.
    """
    said = mappings.get("_meta", {}).get("slice_os")
    if said is None:
        raise LocationError(
            f"The index {index} was not made by slice-os: give another name, and "
            f"'--from-index' to take its documents over."
        )
    try:
        if said["format"] > FORMAT:
            raise LocationError(
                f"The index {index} has format {said['format']}, this slice-os reads up to "
                f"{FORMAT}: install a newer slice-os."
            )
        encoder, vector = said["encoder"], said["vector"]
        field = mappings["properties"]["spans"]["properties"]["vector"]
        dimension, kind, engine = dialect.read_vector(field)
        name, weights_hash, size = typed(encoder, name=str, weights_hash=str, dimension=int)
        words, most, version = typed(said, max_words=int, passage_words=int, format=int)
        store = None if said.get("store") is None else tuple(said["store"])
        head = str(encoder.get("phrase_head", ""))
        meta = IndexMeta(name, weights_hash, size, words, most, version, store, head)
        layout = Layout(
            number(said["tolerance"]),
            vector["type"],
            None if vector["dimension"] == meta.dimension else vector["dimension"],
            engine,
            mappings["properties"]["text"].get("analyzer", "standard"),
            int(settings["index"]["number_of_shards"]),
            int({**settings["index"], **said.get("loading", {})}["number_of_replicas"]),
            declared(mappings["properties"].get("fields", {}).get("properties", {})),
        )
        known = bool(encoder["weights_hash"])
        ours = load_template(dialect.template)["template"]["mappings"]
        if meta.format < FORMAT:
            mappings = {**mappings, "properties": {**ADDED, **mappings["properties"]}}
        odd = _odd(ours, mappings)
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise LocationError(
            f"The mapping of {index} is not the one that slice-os makes ({exc} is not as it should "
            "be): index to a new name."
        ) from exc
    if (dimension, kind) != (vector["dimension"], vector["type"]):
        raise LocationError(
            f"The mapping of {index} has {kind} vectors of {dimension} dimensions, its _meta "
            f"says {vector['type']} of {vector['dimension']}: index to a new name."
        )
    if odd or not known:
        what = odd or "names no encoder in its _meta"
        raise LocationError(f"The mapping of {index} {what}: index to a new name.")
    return meta, layout


def _odd(ours: dict[str, Any], theirs: dict[str, Any], inside: str = "") -> str:
    """Return how the fields of a mapping differ from those of slice-os, in what answers go by."""
    for name, field in ours["properties"].items():
        path, found = inside + name, theirs.get("properties", {}).get(name)
        if found is None:
            return f"lacks the field {path}"
        # A space may stand beside the method or in it.
        found = {"space_type": found.get("method", {}).get("space_type"), **found}
        for key, least in _DECISIVE:
            wanted, has = field.get(key, least), found.get(key, least)
            if wanted != has:
                return f"has {key.replace('_', ' ')} {has} for the field {path}, not {wanted}"
        if "properties" in field and (inner := _odd(field, found, f"{path}.")):
            return inner
    return ""
