"""The description of the endpoints in OpenAPI, made of the records that they take and return."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from slice_os.server.bodies import ColumnsBody, EmbeddingsBody, MineBody, SearchBody, TeachBody
from slice_os.server.same import Same
from slice_os.server.teaching import Taught
from slice_os.storage.contract import IndexStatus
from slice_os.types import DocumentInfo, Excerpt, Hit, Match

RECORDS = (
    *(SearchBody, MineBody, TeachBody, EmbeddingsBody, ColumnsBody),
    *(Hit, Match, Excerpt, DocumentInfo, IndexStatus, Taught, Same),
)
Schema = dict[str, Any]
PARQUET_TYPE = "application/vnd.apache.parquet"


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


TEXT, WHOLE, SHARE = {"type": "string"}, {"type": "integer"}, {"type": "number"}
ANY = {"type": "object", "additionalProperties": True}
SHOWN_HIT = {
    "allOf": [
        _ref("Hit"),
        {"type": "object", "properties": {"context": _ref("Excerpt")}},
    ]
}
COUNTS = {"type": "object", "additionalProperties": WHOLE}
ERROR = _object(
    error={**TEXT, "description": "What is wrong, in a sentence."},
    hint={**TEXT, "description": "What to do about it; may be empty."},
)
OPENAI_ERROR = _object(error=ANY)
MINED = {
    "description": "One line: a match; how far it is; or, the last one, the counts. A stream that "
    "ends without a line that says done is not whole.",
    "anyOf": [
        _ref("Match"),
        _object(progress=SHARE),
        {
            "type": "object",
            "properties": {
                "done": {"type": "boolean", "description": "false: it ended before its end."},
                "min_degree": SHARE,
                "counts": {**COUNTS, "description": "Matches by name."},
                "unknown": {
                    **_list(TEXT),
                    "description": "Phrases of which the encoder knows no word.",
                },
                "error": TEXT,
                "hint": TEXT,
            },
            "required": ["done", "min_degree", "counts"],
        },
    ],
}


def _endpoint(
    summary: str,
    answer: Schema,
    *,
    body: str = "",
    query: Schema | None = None,
    kind: str = "application/json",
    error: str = "Error",
) -> dict[str, Any]:
    """Return what FastAPI is told of an endpoint."""
    more: dict[str, Any] = {}
    if body:
        content = {"application/json": {"schema": _ref(body)}}
        more["requestBody"] = {"required": True, "content": content}
    if query:
        more["parameters"] = [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in query.items()
        ]
    failed = {"application/json": {"schema": _ref(error)}}
    more["responses"] = {
        "200": {"description": "The answer.", "content": {kind: {"schema": answer}}},
        "4XX": {"description": "The request cannot be answered.", "content": failed},
    }
    return {"summary": summary, "openapi_extra": more, "response_model": None}


INDEX = {"index": {**TEXT, "description": "The name of an index; by default the first."}}
FOUND = {
    "oneOf": [
        _object(query=TEXT, hits=_list(SHOWN_HIT)),
        _object(
            query=TEXT,
            documents=_list(
                _object(
                    document=TEXT, title=TEXT, degree=SHARE, metadata=ANY, hits=_list(SHOWN_HIT)
                )
            ),
        ),
    ]
}
SEARCH = _endpoint("The passages that say it best.", FOUND, body="SearchBody")
MINE = _endpoint(
    "Every span that says one of the phrases, as they are found.",
    MINED,
    body="MineBody",
    kind="application/x-ndjson",
)
SAME = {"url": {**TEXT, "description": "The server's address, as curl is to ask it."}}
SAME_SEARCH, SAME_MINE = (
    _endpoint(
        f"A {verb} as curl, the command line, Python and a cluster's client make it.",
        _ref("Same"),
        body=body,
        query=SAME,
    )
    for verb, body in (("search", "SearchBody"), ("mining", "MineBody"))
)
PARQUET = _endpoint(
    "A table of matches or hits as a Parquet file.",
    {**TEXT, "format": "binary"},
    body="ColumnsBody",
    kind=PARQUET_TYPE,
)
TEACH = _endpoint(
    "What some answers teach, and what to ask next.", _ref("Taught"), body="TeachBody"
)
TAUGHT_NAMES = _endpoint("The taught phrases of the workspace.", _object(taught=_list(TEXT)))
TAUGHT = _endpoint("A taught phrase, as its file holds it.", ANY)
DOCUMENTS = _endpoint(
    "Documents in the order of their ids.",
    _object(documents=_list(_ref("DocumentInfo")), more={"type": "boolean"}),
    query={
        **INDEX,
        "filter": {**_list(TEXT), "description": "Only documents with this metadata."},
        "size": {**WHOLE, "minimum": 1, "default": 100},
        "offset": {**WHOLE, "minimum": 0, "default": 0},
    },
)
DOCUMENT = _endpoint(
    "A document's text, or the passages around an offset.",
    _ref("Excerpt"),
    query={
        **INDEX,
        "at": {**WHOLE, "minimum": 0, "description": "A character of the document."},
        "context": {**WHOLE, "minimum": 0, "default": 1, "description": "Passages on each side."},
    },
)
STATUS = _endpoint("The size and state of an index.", _ref("IndexStatus"), query=INDEX)
SERVER = _endpoint(
    "What this server has: its indexes, encoder and limits.",
    _object(
        version=TEXT,
        indexes=_list(TEXT),
        encoder=TEXT,
        workspace={"type": "boolean", "description": "Whether taught phrases can be kept."},
        limits=COUNTS,
    ),
)
EMBEDDINGS = _endpoint(
    "The vectors of texts, in OpenAI's form.", ANY, body="EmbeddingsBody", error="OpenAIError"
)
MODELS = _endpoint("The encoder, in OpenAI's form.", ANY, error="OpenAIError")
HEALTH = _endpoint("Whether the server is alive.", _object(status=TEXT))
METRICS = _endpoint("Counters in Prometheus' text format.", TEXT, kind="text/plain")


def description(app: FastAPI) -> dict[str, Any]:
    """Return the description of an application, in OpenAPI 3.1."""
    made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    _, schemas = msgspec.json.schema_components(RECORDS, ref_template="#/components/schemas/{name}")
    made["components"] = {
        "schemas": {**schemas, "Error": ERROR, "OpenAIError": OPENAI_ERROR},
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
    made["security"] = [{"token": []}, {}]
    for operations in made["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)  # that of a validation that is not ours
    return made
