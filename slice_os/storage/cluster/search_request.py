"""The request that a search is, for applications that send it themselves."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from slice_os.encoders import EncoderInfo
from slice_os.errors import LocationError, QueryError
from slice_os.storage.cluster import queries
from slice_os.storage.cluster.backend import ClusterBackend
from slice_os.storage.cluster.client import curl
from slice_os.storage.cluster.dialect import Dialect, load_dialect
from slice_os.storage.cluster.mining_scan import usual_tolerance
from slice_os.storage.cluster.server_fusion import normalization_pipeline, rrf_pipeline
from slice_os.storage.cluster.settings import Layout, parse_location
from slice_os.storage.fusion import DEFAULT_FUSION, get_fusion
from slice_os.text.filters import Condition
from slice_os.types import Float32

Body = dict[str, Any]


def search_body(
    text: str,
    vector: Float32 | None,
    info: EncoderInfo | None,
    location: str | None,
    *,
    mode: str,
    fusion: str,
    weight: float | None,
    filters: Sequence[Condition],
    size: int,
    min_degree: float,
    dialect: str,
    **options: Any,
) -> Body | list[Body]:
    """Return the body of a search; see `slice_os.build_request`.

    `vector` is the query's and `info` is of its encoder, both None for the mode lexical; `options`
    are those of `Backend.open`.
    """
    layout, kind = Layout(), load_dialect(dialect)
    is_fused = mode == "hybrid" and fusion != DEFAULT_FUSION
    if location:
        layout, kind = _fitting(location, info, mode, is_fused, options)
    common: dict[str, Any] = {"size": size, "filters": filters, "dialect": kind.bodies}
    if vector is None:
        return queries.lexical_query(text, **common)
    common |= {"vector_type": layout.vector_type, "dimensions": layout.dimensions}
    if mode == "dense":
        return queries.span_query(vector, **common)
    if mode == "exact":
        return queries.exact_query(vector, **common)
    if mode == "mining":
        tolerance = layout.tolerance
        return queries.mining_query(vector, min_degree, tolerance=tolerance, spans=3, **common)
    common["k"] = max(size, queries.NEAREST)
    if not kind.is_saturating and not is_fused:
        return queries.hybrid_queries(text, vector, **common)
    common["pagination_depth"] = max(size, queries.PAGINATION_DEPTH)
    body = queries.hybrid_query(text, vector, fusion=fusion, weight=weight, **common)
    if "hybrid" in body.get("query", {}):
        share = get_fusion(fusion, weight)[1]
        body["search_pipeline"] = (
            rrf_pipeline(weight=share)
            if fusion == "rrf"
            else normalization_pipeline(0.5 if share is None else share)
        )
    return body


def _fitting(
    location: str, info: EncoderInfo | None, mode: str, is_fused: bool, options: dict[str, Any]
) -> tuple[Layout, type[Dialect]]:
    """Return the layout and the dialect of an index."""
    backend = ClusterBackend.open(location, **options)
    if backend is None:
        raise LocationError(
            f"There is no index at {location}",
            hint="leave --index out, or index to it first.",
        )
    with closing(backend):
        cluster, layout = backend.cluster, backend.layout
        if info is not None:
            backend.meta.check_encoder(location, info)
        if is_fused and not cluster.dialect.has_hybrid(cluster.client):
            raise QueryError(
                f"The cluster of {location} cannot run a hybrid query, as not all its nodes have "
                "the neural-search plugin",
                hint=(
                    f"choose the fusion {DEFAULT_FUSION}, or 'slice-os search', which fuses here."
                ),
            )
        if mode == "mining":
            layout = replace(layout, tolerance=usual_tolerance(cluster, layout))
        return layout, type(cluster.dialect)


def as_curl(body: Body | list[Body], location: str | None) -> str:
    """Return the curl command that sends a body, or several in one request, for a POSIX shell.

    The credentials that the environment names are taken from it when it runs; those of AWS cannot
    be.
    """
    path = f"{'_msearch' if isinstance(body, list) else '_search'}?include_named_queries_score=true"
    if location:
        address = parse_location(location)
        command = curl(address, f"/{address.name}/{path}")
    else:
        command = f"curl -sS 'http://localhost:9200/NAME/{path}'"
    if isinstance(body, list):
        lines = [json.dumps(line, ensure_ascii=False) for each in body for line in ({}, each)]
        kind, data = "x-ndjson' --data-binary", "\n".join([*lines, ""])
    else:
        kind, data = "json' -d", json.dumps(body, ensure_ascii=False)
    return f"{command} -H 'Content-Type: application/{kind} {shlex.quote(data)}"
