"""Vectors in the form of OpenAI's endpoint, which other programs know how to ask."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import msgspec
import numpy as np
import pybase64

from slice_os.encoders import Encoder
from slice_os.options import ServeOptions
from slice_os.query import VectorType, field_vectors
from slice_os.server.bodies import EmbeddingsBody, check_texts
from slice_os.server.failures import RequestError, failure, status_of

TOGETHER = 16
"""Texts that are encoded in one go: between two, a client that is gone is noticed."""


def parse(asked: Mapping[str, Any]) -> EmbeddingsBody:
    """Return a request; what it holds that is not known is ignored.

    Raises:
        RequestError: something is missing, or of another type.
    """
    try:
        return msgspec.convert(asked, EmbeddingsBody)
    except msgspec.ValidationError as exc:
        raise RequestError(
            f"The request is not as it should be ({exc}): give a model, and a text or several as "
            "input."
        ) from exc


async def embed(
    encoder: Encoder, body: EmbeddingsBody, limits: ServeOptions, executor: Executor
) -> dict[str, Any]:
    """Return the unit vectors of texts, those that searches compare spans with.

    Raises:
        RequestError: the model is not the encoder, or something cannot be given.
    """
    info = encoder.info
    if body.model != info.name:
        raise RequestError(
            f"There is no model {body.model[:60]!r} here: ask for {info.name!r}.", 404
        )
    dimensions = info.dimension if body.dimensions is None else body.dimensions
    if not 1 <= dimensions <= info.dimension:
        raise RequestError(
            f"{info.name} has {info.dimension} dimensions, not {dimensions}: ask for at most those."
        )
    if body.encoding_format not in ("float", "base64", "int8"):
        raise RequestError("encoding_format must be float, base64 or int8.")
    kind: VectorType = "byte" if body.encoding_format == "int8" else "float"
    texts = (body.input,) if isinstance(body.input, str) else body.input
    if not texts or not all(text.strip() for text in texts):
        raise RequestError("The input is empty: give a text, or several.")
    check_texts(texts, limits)

    def encode(batch: tuple[str, ...]) -> tuple[np.ndarray[Any, Any], int]:
        return encoder.encode(batch), sum(len(encoder.pieces(text)) for text in batch)

    data: list[dict[str, Any]] = []
    tokens = 0
    for first in range(0, len(texts), TOGETHER):
        vectors, count = await asyncio.get_running_loop().run_in_executor(
            executor, encode, texts[first : first + TOGETHER]
        )
        tokens += count
        if kind == "byte" or dimensions < info.dimension:
            vectors = field_vectors(vectors, kind, dimensions)
        for vector in vectors:
            given = (
                pybase64.b64encode_as_string(vector.astype("<f4").tobytes())
                if body.encoding_format == "base64"
                else vector.tolist()
            )
            data.append({"object": "embedding", "index": len(data), "embedding": given})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": info.name, "usage": usage}


def models(encoder: Encoder) -> dict[str, Any]:
    """Return the one model that there is."""
    model = {"id": encoder.info.name, "object": "model", "created": 0, "owned_by": "slice-os"}
    return {"object": "list", "data": [model]}


def openai_failure(error: Exception) -> dict[str, Any]:
    """Return an error in OpenAI's form."""
    said, status = failure(error), status_of(error)
    message = ": ".join(filter(None, (said["error"], said["hint"])))
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
