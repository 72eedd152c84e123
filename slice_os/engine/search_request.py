"""The request that a search of a cluster is, for applications that send it themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from slice_os.encoders import load_encoder
from slice_os.engine.search import encode_queries
from slice_os.errors import LocationError
from slice_os.storage import connection, module_for
from slice_os.storage.contract import Mode
from slice_os.storage.fusion import DEFAULT_FUSION
from slice_os.text import parse_query
from slice_os.text.filters import Filter, parse_filters

Body = dict[str, Any]


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
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> Body | list[Body]:
    """Return the body of a ``_search`` for a text, encoded; its parts are `slice_os.query`.

    Where ``hybrid`` takes two searches, it is a list of two, for one ``_msearch``.
    ``"exact words"`` and ``-word`` in the text, `must`, `must_not` and `literal` are as in
    `Index.search`. `location` names an index whose settings (vector type, dimensions, tolerance)
    the body fits; None stands for the defaults of a server of the kind that `dialect` says.
    `min_degree` is for the mode ``mining``. With the fusions ``rrf`` and ``min_max`` the
    body holds its search pipeline and needs the neural-search plugin; of another dialect it is a
    retriever, and needs a licence. `credentials` and `client` are those of `slice_os.Index`; the
    mode ``lexical`` needs no encoder.

    Raises:
        QueryError: the text holds no word, or a setting is out of its range.
        LocationError: the location is a folder, or holds no index.
        EncoderMismatchError: the index was made by another encoder.
        QueryError: the cluster of the location cannot fuse so, for want of the plugin.
    """
    requests = _requests(location)
    query = parse_query(text, must=must, must_not=must_not, literal=literal)
    vector = info = None
    if mode != "lexical":
        with load_encoder(encoder) as loaded:
            info, vector = loaded.info, encode_queries(loaded, [query.text])[0]
    body: Body | list[Body] = requests.search_body(
        query.text,
        vector,
        info,
        location,
        mode=mode,
        fusion=fusion,
        weight=weight,
        filters=[*parse_filters(filters), *query.wording],
        size=size,
        min_degree=min_degree,
        dialect=dialect,
        **connection(credentials, client),
    )
    return body


def as_curl(body: Body | list[Body], location: str | None) -> str:
    """Return the curl command that sends a body, or several in one request, for a POSIX shell.

    The credentials that the environment names are taken from it when it runs; those of AWS cannot
    be.
    """
    command: str = _requests(location).as_curl(body, location)
    return command


def _requests(location: str | None) -> Any:
    """Return the module of a backend that makes requests."""
    module = module_for(location or "https://", "search_request")
    if module is None:
        raise LocationError(f"{location} is a folder: a request is for an index in a cluster.")
    return module
