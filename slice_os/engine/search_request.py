"""The request that a search of a cluster is, for applications that send it themselves."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from slice_os.encoders import EncoderInfo, load_encoder
from slice_os.engine.search import encode_queries
from slice_os.errors import LocationError, QueryError
from slice_os.storage import backend_for
from slice_os.storage.cluster.dialect import Dialect, load_dialect
from slice_os.storage.cluster.query import hybrid_query, normalization_pipeline, rrf_pipeline
from slice_os.storage.cluster.query.bodies import NEAREST, PAGINATION_DEPTH
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.contract import Mode
from slice_os.storage.fusion import DEFAULT_FUSION, get_fusion
from slice_os.text import parse_query
from slice_os.text.filters import Condition, Filter, parse_filters


def build_request(
    text: str,
    location: str | None = None,
    *,
    must: str | Sequence[str] = (),
    must_not: str | Sequence[str] = (),
    literal: bool = False,
    mode: Mode | Literal["mining", "exact"] = "hybrid",
    fusion: str = DEFAULT_FUSION,
    weight: float | None = None,
    filters: Mapping[str, object] | Iterable[str | Filter] | None = None,
    size: int = 10,
    min_degree: float = 0.8,
    encoder: str | Path | None = None,
    dialect: str = "opensearch",
) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the body of a ``_search`` for a text, encoded; its parts are `slice_os.query`.

    Where ``hybrid`` takes two searches, it is a list of two, for one ``_msearch``.
    ``"exact words"`` and ``-word`` in the text, `must`, `must_not` and `literal` are as in
    `Index.search`. `location` names an index whose settings (vector type, dimensions, tolerance)
    the body fits; None stands for the defaults of a server of the kind that `dialect` says.
    `min_degree` is for the mode ``mining``. With the fusions ``rrf`` and ``min_max`` the
    body holds its search pipeline and needs the neural-search plugin; of another dialect it is a
    retriever, and needs a licence.

    Raises:
        QueryError: the text holds no word, or a setting is out of its range.
        LocationError: the location is a folder, or holds no index.
        EncoderMismatchError: the index was made by another encoder.
        QueryError: the cluster of the location cannot fuse so, for want of the plugin.
    """
    fused = mode == "hybrid" and fusion != DEFAULT_FUSION
    asked = parse_query(text, must=must, must_not=must_not, literal=literal)
    text = asked.text
    conditions: list[Condition] = [*parse_filters(filters), *asked.wording]
    with load_encoder(encoder) as loaded:
        layout, kind = Layout(), load_dialect(dialect)
        if location:
            layout, kind = _fitting(location, loaded.info, mode, fused, conditions)
        vector = encode_queries(loaded, [text])[0]
    common: dict[str, Any] = {"size": size, "filters": conditions}
    vectors: dict[str, Any] = {
        "vector_type": layout.vector_type,
        "dimensions": layout.dimensions,
    }
    if mode == "lexical":
        return kind.lexical_query(text, **common)
    if mode == "dense":
        return kind.span_query(vector, **common, **vectors)
    if mode == "exact":
        return kind.exact_query(vector, **common, **vectors)
    if mode == "mining":
        return kind.mining_query(
            vector, min_degree, tolerance=layout.tolerance, spans=3, **common, **vectors
        )
    vectors["k"] = max(size, NEAREST)
    if kind.hybrid_query is None and not fused:
        return kind.hybrid_queries(text, vector, **common, **vectors)
    vectors |= {"pagination_depth": max(size, PAGINATION_DEPTH), "dialect": kind.name}
    body = hybrid_query(text, vector, fusion=fusion, weight=weight, **common, **vectors)
    if "hybrid" not in body.get("query", {}):
        return body
    share = get_fusion(fusion, weight)[1]
    if fusion == "rrf":
        body["search_pipeline"] = rrf_pipeline(weight=share)
    elif fusion == "min_max":
        body["search_pipeline"] = normalization_pipeline(0.5 if share is None else share)
    return body


def _fitting(
    location: str, info: EncoderInfo, mode: str, fused: bool, conditions: Sequence[Condition]
) -> tuple[Layout, type[Dialect]]:
    """Return the layout and the dialect of an index."""
    from slice_os.storage.cluster.read import ClusterBackend

    kind = backend_for(location)
    if not issubclass(kind, ClusterBackend):
        raise LocationError(f"{location} is a folder: a request is for an index in a cluster.")
    backend = kind.open(location)
    if backend is None:
        raise LocationError(
            f"There is no index at {location}: leave --index out, or index to it first."
        )
    try:
        backend.meta.check_encoder(location, info)
        if fused and not backend.has_hybrid:
            raise QueryError(
                f"The cluster of {location} cannot run a hybrid query, as not all its nodes have "
                f"the neural-search plugin: choose the fusion {DEFAULT_FUSION}, or 'slice-os "
                "search', which fuses here."
            )
        backend.check_wording(conditions)
        layout = backend.layout
        if mode == "mining":
            layout = replace(layout, tolerance=backend.usual_tolerance)
        return layout, type(backend.dialect)
    finally:
        backend.close()


def as_curl(body: dict[str, Any] | list[dict[str, Any]], location: str | None) -> str:
    """Return the curl command that sends a body, or several in one request, for a POSIX shell.

    The credentials that the environment names are taken from it when it runs; those of AWS cannot
    be.
    """
    path = f"{'_msearch' if isinstance(body, list) else '_search'}?include_named_queries_score=true"
    if location:
        from slice_os.storage.cluster.client import curl
        from slice_os.storage.cluster.settings import parse_location

        address = parse_location(location)
        command = curl(address, f"/{address.name}/{path}")
    else:
        command = f"curl -sS 'http://localhost:9200/NAME/{path}'"
    if isinstance(body, list):
        lines = [json.dumps(one, ensure_ascii=False) for search in body for one in ({}, search)]
        kind, data = "x-ndjson' --data-binary", "\n".join([*lines, ""])
    else:
        kind, data = "json' -d", json.dumps(body, ensure_ascii=False)
    return f"{command} -H 'Content-Type: application/{kind} {shlex.quote(data)}"
