"""The request that a search of a cluster is, for applications that send it themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slice_os.encoders import EncoderLike
from slice_os.encoders.encoder import open_encoder
from slice_os.engine.search import encode_queries
from slice_os.errors import LocationError
from slice_os.options import RequestOptions, takes
from slice_os.storage import connection, module_for
from slice_os.text.filters import parse_filters

Body = dict[str, Any]


@takes(RequestOptions)
def build_request(
    text: str,
    location: str | None = None,
    *,
    encoder: EncoderLike = None,
    dialect: str = "opensearch",
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
    **options: Any,
) -> Body | list[Body]:
    """Return the body of a ``_search`` for a text, encoded; its parts are `slice_os.query`.

    Where ``hybrid`` takes two searches, it is a list of two, for one ``_msearch``.
    `location` names an index whose settings (vector type, dimensions, tolerance)
    the body fits; None stands for the defaults of a server of the kind that `dialect` says.
    With the fusions ``rrf`` and ``min_max`` the body holds its search pipeline and needs the
    neural-search plugin; of another dialect it is a retriever, and needs a licence. `credentials`
    and `client` are those of `slice_os.Index`; the mode ``lexical`` needs no encoder.

    Raises:
        QueryError: the text holds no word, or an option is out of its range.
        LocationError: the location is a folder, or holds no index.
        EncoderMismatchError: the index was made by another encoder.
        QueryError: the cluster of the location cannot fuse so, for want of the plugin.
    """
    chosen, requests = RequestOptions.of(**options), _requests(location)
    query = chosen.parse(text)
    vector = info = None
    if chosen.mode != "lexical":
        with open_encoder(encoder) as loaded:
            info, vector = loaded.info, encode_queries(loaded, [query.text])[0]
    body: Body | list[Body] = requests.search_body(
        query.text,
        vector,
        info,
        location,
        mode=chosen.mode,
        fusion=chosen.fusion,
        weight=chosen.weight,
        filters=[*parse_filters(chosen.filters), *query.wording],
        size=chosen.size,
        min_degree=chosen.min_degree,
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
