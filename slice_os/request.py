"""The request that a search of a cluster is, for applications that send it themselves."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from slice_os.backends import backend_for
from slice_os.backends.base import Mode
from slice_os.backends.cluster.settings import Layout
from slice_os.encoder import load_encoder
from slice_os.errors import EncoderMismatchError, LocationError, QueryError
from slice_os.filters import Condition, Filter, parse_filters
from slice_os.fusion import DEFAULT_FUSION, get_fusion
from slice_os.lexical import parse_query
from slice_os.query import (
    exact_query,
    hybrid_query,
    lexical_query,
    mining_query,
    normalization_pipeline,
    rrf_pipeline,
    span_query,
)
from slice_os.query.bodies import NEAREST, PAGINATION_DEPTH
from slice_os.search import encode_queries


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
    degree: float = 0.8,
    encoder: str | Path | None = None,
) -> dict[str, Any]:
    """Return the body of a ``_search`` for a text, encoded; see `slice_os.query` for its parts.

    ``"exact words"`` and ``-word`` in the text, `must`, `must_not` and `literal` are as in
    `Index.search`. `location` names an index whose settings (vector type, dimensions, tolerance)
    the body fits; None stands for the defaults. `degree` is the threshold of the mode
    ``mining``. With the fusions ``rrf`` and
    ``min_max`` the body holds its search pipeline and needs the neural-search plugin.

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
        layout = Layout()
        if location:
            layout = _layout(location, loaded.info.family, mode, fused, conditions)
        vector = encode_queries(loaded, [text])[0]
    common: dict[str, Any] = {"size": size, "filters": conditions}
    vectors: dict[str, Any] = {
        "vector_type": layout.vector_type,
        "dimensions": layout.dimensions,
    }
    if mode == "lexical":
        return lexical_query(text, **common)
    if mode == "dense":
        return span_query(vector, **common, **vectors)
    if mode == "exact":
        return exact_query(vector, **common, **vectors)
    if mode == "mining":
        return mining_query(
            vector, degree, tolerance=layout.tolerance, spans=3, **common, **vectors
        )
    reach: dict[str, Any] = {
        "k": max(size, NEAREST),
        "pagination_depth": max(size, PAGINATION_DEPTH),
    }
    body = hybrid_query(text, vector, fusion=fusion, weight=weight, **reach, **common, **vectors)
    share = get_fusion(fusion, weight)[1]
    if fusion == "rrf":
        body["search_pipeline"] = rrf_pipeline(weight=share)
    elif fusion == "min_max":
        body["search_pipeline"] = normalization_pipeline(0.5 if share is None else share)
    return body


def _layout(
    location: str, family: str, mode: str, fused: bool, conditions: Sequence[Condition]
) -> Layout:
    from slice_os.backends.cluster.index import ClusterBackend

    kind = backend_for(location)
    if not issubclass(kind, ClusterBackend):
        raise LocationError(f"{location} is a folder: a request is for an index in a cluster.")
    backend = kind.open(location)
    if backend is None:
        raise LocationError(
            f"There is no index at {location}: leave --index out, or index to it first."
        )
    try:
        if backend.meta.family != family:
            raise EncoderMismatchError(
                f"The index {location} was made by the encoder {backend.meta.encoder} (family "
                f"{backend.meta.family[:12]}), not by one of family {family[:12]}: give its folder."
            )
        if fused and not backend.has_hybrid:
            raise QueryError(
                f"The cluster of {location} cannot run a hybrid query, as not all its nodes have "
                f"the neural-search plugin: choose the fusion {DEFAULT_FUSION}, or 'slice-os "
                "search', which fuses here."
            )
        backend.check_wording(conditions)
        if mode == "mining":
            return replace(backend.layout, tolerance=backend.usual_tolerance)
        return backend.layout
    finally:
        backend.close()


def as_curl(body: dict[str, Any], location: str | None) -> str:
    """Return the curl command that sends a body, for a POSIX shell.

    The credentials that the environment names are taken from it when it runs; those of AWS cannot
    be.
    """
    path = "_search?include_named_queries_score=true"
    if location:
        from slice_os.backends.cluster.address import parse_location
        from slice_os.backends.cluster.client import curl

        address = parse_location(location)
        command = curl(address, f"/{address.name}/{path}")
    else:
        command = f"curl -sS 'http://localhost:9200/NAME/{path}'"
    data = shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"{command} -H 'Content-Type: application/json' -d {data}"
