"""How a cluster is told to ask `slice_os.serve` for vectors: ML Commons' connector and model."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from slice_os.errors import QueryError
from slice_os.storage.cluster.queries import SPANS, VECTOR
from slice_os.storage.cluster.vectors import VectorType

NEAR = 100
"""Spans that the example asks for: several may be of one passage."""


def connector(
    url: str,
    *,
    model: str,
    dimensions: int,
    vector_type: VectorType = "byte",
) -> list[tuple[str, dict[str, Any]]]:
    """Return what is sent to OpenSearch so that ``neural`` clauses ask a server for vectors.

    Args:
        url: Where `slice_os.serve` listens, as the cluster's nodes reach it.
        model: The name of the encoder that it serves.
        dimensions: Those of the index's span vectors.
        vector_type: Theirs.

    Returns:
        Requests and their bodies, in order: settings that let a node call the server, the connector
        (its answer has CONNECTOR_ID), the model (MODEL_ID), and a search with a ``neural`` clause.
        TOKEN stands for the server's SLICE_OS_TOKEN; ML Commons wants one in any case.

    Raises:
        QueryError: the URL is none.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise QueryError(f"{url!r} is no address of a server: give one like http://host:8080.")
    endpoint = f"{url.rstrip('/')}/v1/embeddings"
    formats = {"byte": "int8", "float": "float"}
    action = {
        "action_type": "predict",
        "method": "POST",
        "url": endpoint,
        "headers": {
            "content-type": "application/json",
            "authorization": "Bearer ${credential.token}",
        },
        "request_body": (
            '{"input": ${parameters.input}, "model": "${parameters.model}", '
            f'"dimensions": {dimensions}, "encoding_format": "{formats[vector_type]}"}}'
        ),
        "pre_process_function": "connector.pre_process.openai.embedding",
        "post_process_function": "connector.post_process.openai.embedding",
    }
    described = {
        "name": f"slice-os {model}",
        "description": "Vectors that span vectors are compared with",
        "version": "1",
        "protocol": "http",
        "parameters": {"model": model},
        "credential": {"token": "TOKEN"},
        "actions": [action],
    }
    settings = {
        "plugins.ml_commons.trusted_connector_endpoints_regex": [
            f"^{re.escape(url.rstrip('/'))}/.*$"
        ],
        "plugins.ml_commons.connector.private_ip_enabled": True,
        "plugins.ml_commons.only_run_on_ml_node": False,
    }
    neural = {VECTOR: {"query_text": "wants to cancel", "model_id": "MODEL_ID", "k": NEAR}}
    search = {
        "_source": ["document", "title", "text"],
        "query": {
            "nested": {
                "path": SPANS,
                "score_mode": "max",
                "query": {"neural": neural},
                "inner_hits": {
                    "_source": False,
                    "docvalue_fields": [f"{SPANS}.start", f"{SPANS}.end"],
                },
            }
        },
    }
    return [
        ("PUT /_cluster/settings", {"persistent": settings}),
        ("POST /_plugins/_ml/connectors/_create", described),
        (
            "POST /_plugins/_ml/models/_register?deploy=true",
            {
                "name": f"slice-os {model}",
                "function_name": "remote",
                "description": f"{dimensions} dimensions, {vector_type}",
                "connector_id": "CONNECTOR_ID",
            },
        ),
        ("POST /INDEX/_search", search),
    ]
