"""Span vectors as a cluster stores them, and how much wider than a degree it has to search them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from slice_os.errors import QueryError

VectorType = Literal["byte", "float"]
MARGINS: Mapping[VectorType, float] = {"byte": 0.003, "float": 1e-6}
"""How much lower a stored degree may be because both vectors were rounded."""
LARGEST = 127
"""The largest component of a byte vector; a cosine does not depend on the scale."""


def field_vectors(
    vectors: npt.ArrayLike, vector_type: VectorType = "byte", dimensions: int | None = None
) -> npt.NDArray[Any]:
    """Return vectors ``[..., d]`` as the field holds them, int8 or float32 ``[..., dimensions]``.

    Only the first `dimensions` are kept. A float vector gets length 1, a byte vector is scaled
    until its largest component is ±127 and rounded. A zero vector stays zero.

    Raises:
        QueryError: not that many dimensions, an unknown vector type, or a value that is no number.
    """
    if vector_type not in get_args(VectorType):
        raise QueryError(f"There is no vector type {vector_type!r}: choose byte or float.")
    array = np.asarray(vectors, dtype=np.float32)
    if array.ndim == 0:
        raise QueryError("A vector is needed, not a single number.")
    kept = array.shape[-1] if dimensions is None else dimensions
    if not 1 <= kept <= array.shape[-1]:
        raise QueryError(
            f"The index keeps {kept} dimensions of a vector, which has {array.shape[-1]}."
        )
    array = array[..., :kept]
    largest = np.abs(array).max(axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        raise QueryError("A vector holds a value that is no finite number.")
    array = array / np.where(largest > 0, largest, np.float32(1))  # no square can overflow
    if vector_type == "byte":
        return np.asarray(np.rint(array * np.float32(LARGEST)), dtype=np.int8)
    norms = np.linalg.norm(array, axis=-1, keepdims=True)
    return np.asarray(array / np.where(norms > 0, norms, np.float32(1)), dtype=np.float32)


def query_value(
    vector: npt.ArrayLike, vector_type: VectorType = "byte", dimensions: int | None = None
) -> list[int] | list[float]:
    """Return one query's vector as JSON numbers, scaled as `field_vectors` scales.

    Raises:
        QueryError: it is not one vector, or it is zero: no span is similar to nothing.
    """
    value = field_vectors(vector, vector_type, dimensions)
    if value.ndim != 1:
        raise QueryError(f"A query has one vector, not an array of shape {value.shape}.")
    if not value.any():
        raise QueryError("The query's vector is zero: the encoder knows no word of the query.")
    if vector_type == "byte":
        return [int(component) for component in value]
    return [float(str(component)) for component in value]  # the shortest that reads back equal


def radius(degree: float, tolerance: float, margin: float = 0.0) -> float:
    """Return the least stored degree of a passage that may hold a span of the given degree.

    A span at the angle t from the query has a stored one within t + arccos(tolerance), as angles
    obey the triangle inequality. 0.0 means that any passage may.

    Raises:
        QueryError: degree or margin not in [0, 1], or tolerance not in (0, 1].
    """
    if not 0 <= degree <= 1 or not 0 < tolerance <= 1 or not 0 <= margin <= 1:
        raise QueryError(
            f"degree {degree} and margin {margin} must be from 0 to 1, tolerance {tolerance} "
            "above 0 and at most 1."
        )
    angle = math.acos(2 * degree - 1) + math.acos(tolerance)
    return max(0.0, (1 + math.cos(angle)) / 2 - margin) if angle < math.pi else 0.0
