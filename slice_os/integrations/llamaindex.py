"""A retriever for LlamaIndex (extra `llamaindex`).

>>> from slice_os.integrations.llamaindex import SliceRetriever  # doctest: +SKIP
>>> nodes = SliceRetriever(slice_os.open("demo.slice")).retrieve("late fee")  # doctest: +SKIP
>>> nodes[0].metadata["spans"]  # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
from typing import Any

from slice_os.api import Index
from slice_os.errors import MissingExtraError
from slice_os.integrations.common import (
    Clauses,
    all_of,
    any_of,
    as_filters,
    leaf,
    passage_metadata,
)

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
except ImportError as exc:
    raise MissingExtraError("Retrieving for LlamaIndex", "llamaindex") from exc

_OPERATORS = {"==": "=", "nin": "not in", "any": "in", "contains": "="}


class SliceRetriever(BaseRetriever):
    """Passages by spans and BM25; scores are degrees, the spans are in the nodes' metadata."""

    def __init__(
        self,
        index: Index,
        *,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        options: dict[str, Any] | None = None,
        **base: Any,
    ) -> None:
        """Search an open index, which its owner closes.

        Args:
            index: What is searched.
            similarity_top_k: How many passages.
            filters: Only documents with this metadata.
            options: Other parameters of a search (`slice_os.options.SearchOptions`).
            **base: What every retriever of LlamaIndex takes.

        Raises:
            QueryError: A filter has no counterpart in slice-os.
        """
        super().__init__(**base)
        self.index = index
        self.similarity_top_k = similarity_top_k
        self.filters = as_filters(_clauses(filters)) if filters else []
        self.options = options or {}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        chosen = {"filters": self.filters, **self.options, "size": self.similarity_top_k}
        return [
            NodeWithScore(
                node=TextNode(
                    id_=f"{hit.document}#{hit.passage}",
                    text=hit.text,
                    metadata=passage_metadata(hit),
                    excluded_embed_metadata_keys=["spans"],
                    excluded_llm_metadata_keys=["spans"],
                    start_char_idx=hit.document_start,
                    end_char_idx=hit.document_end,
                ),
                score=hit.degree,
            )
            for hit in self.index.search(query_bundle.query_str, **chosen)
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _clauses(filters: Any, negated: bool = False) -> Clauses:
    """Return what filters mean; a negated tree has its leaves negated (De Morgan)."""
    if not isinstance(filters, MetadataFilters):
        filter_: MetadataFilter = filters
        operator = str(filter_.operator.value)
        if operator == "all":
            values = filter_.value if isinstance(filter_.value, list) else [filter_.value]
            each = [leaf(filter_.key, "=", value, negated=negated) for value in values]
            return any_of(each) if negated else all_of(each)
        return leaf(filter_.key, _OPERATORS.get(operator, operator), filter_.value, negated=negated)
    condition = str(filters.condition.value) if filters.condition else "and"
    inner = negated != (condition == "not")
    parts = [_clauses(part, inner) for part in filters.filters]
    return any_of(parts) if (condition == "or") != inner else all_of(parts)
