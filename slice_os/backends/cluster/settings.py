"""How an index in a cluster is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypedDict

from slice_os.errors import LocationError

DIALECTS = {
    "opensearch": "slice_os.backends.cluster.opensearch:OpenSearch",
    "elasticsearch": "slice_os.backends.cluster.elasticsearch:Elasticsearch",
}
"""Kinds of servers (`dialect.Dialect`): name -> module and class, loaded when used, asked in this
order."""
VectorType = Literal["byte", "float"]
Engine = Literal["", "lucene", "faiss", "hnsw", "int8_hnsw", "bbq_hnsw", "bbq_disk"]


class ClusterSettings(TypedDict, total=False):
    """What is asked of an index in a cluster, fixed when it is made, but for the replicas.

    What is left out is as `Layout` has it, and of an index that exists not asked about. `fields`
    names metadata that is mapped with a type of its own too, name -> type: ``fields.year``.
    """

    tolerance: float
    vector_type: VectorType
    dimensions: int | None
    engine: Engine
    analyzer: str
    shards: int
    replicas: int
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """How an index in a cluster is made: `ClusterSettings`, with the defaults.

    Attributes:
        tolerance: The least cosine of a span with the stored span that stands for it
            (`spans.cover`).
        engine: What searches the span vectors; empty for what the kind of server usually has
            (`dialect.Dialect.engines`).
        dimensions: Of the stored span vectors, the first of the encoder's; None for all.
    """

    tolerance: float = 0.9
    vector_type: VectorType = "byte"
    dimensions: int | None = None
    engine: Engine = ""
    analyzer: str = "english"
    shards: int = 1
    replicas: int = 1
    fields: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Layout:
        """Return the layout that some settings ask for, the others at their defaults.

        Raises:
            LocationError: there is no such setting.
        """
        if unknown := settings.keys() - {one.name for one in fields(cls)}:
            raise LocationError(
                f"There is no setting {min(unknown)!r}: choose from "
                f"{', '.join(one.name for one in fields(cls))}."
            )
        return cls(**settings)
