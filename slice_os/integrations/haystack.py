"""A retriever component for Haystack 2 (extra `haystack`).

>>> from slice_os.integrations.haystack import SliceRetriever  # doctest: +SKIP
>>> retriever = SliceRetriever("demo.slice", top_k=3)  # doctest: +SKIP
>>> retriever.run("wants to cancel")["documents"][0].meta["spans"]  # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
from typing import Any

from slice_os.api import Index
from slice_os.errors import MissingExtraError, QueryError
from slice_os.integrations.common import (
    Clauses,
    all_of,
    any_of,
    as_filters,
    leaf,
    passage_metadata,
)

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as exc:
    raise MissingExtraError("Retrieving for Haystack", "haystack") from exc


@component
class SliceRetriever:
    """Passages by spans and BM25; scores are degrees, the spans are in the documents' meta."""

    def __init__(
        self,
        location: str,
        *,
        top_k: int = 10,
        filters: dict[str, Any] | None = None,
        encoder: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Search the index at a location, which is opened when it is first asked.

        Args:
            location: A folder, or ``https://host:9200/name`` in a cluster, whose credentials are
                the environment's.
            top_k: How many passages.
            filters: Haystack's filters, for every run that has none of its own.
            encoder: See `slice_os.load_encoder`.
            options: Other parameters of a search (`slice_os.options.SearchOptions`).
        """
        self.location, self.top_k, self.filters = location, top_k, filters
        self.encoder, self.options = encoder, options
        self._index: Index | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a pipeline saves it."""
        saved: dict[str, Any] = default_to_dict(
            self,
            location=self.location,
            top_k=self.top_k,
            filters=self.filters,
            encoder=self.encoder,
            options=self.options,
        )
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SliceRetriever:
        """Return a component that was saved."""
        loaded: SliceRetriever = default_from_dict(cls, data)
        return loaded

    def warm_up(self) -> None:
        """Open the index."""
        if self._index is None:
            self._index = Index(self.location, encoder=self.encoder)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the best passages for a query.

        Raises:
            QueryError: A filter has no counterpart in slice-os.
            LocationError: There is no index at the location.
        """
        self.warm_up()
        assert self._index is not None
        conditions = filters or self.filters
        chosen = {
            "filters": as_filters(_clauses(conditions)) if conditions else (),
            **(self.options or {}),
            "size": self.top_k if top_k is None else top_k,
        }
        return {
            "documents": [
                Document(
                    id=f"{hit.document}#{hit.passage}",
                    content=hit.text,
                    meta=passage_metadata(hit),
                    score=hit.degree,
                )
                for hit in self._index.search(query, **chosen)
            ]
        }

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Do the same in a thread."""
        found: dict[str, list[Document]] = await asyncio.to_thread(self.run, query, filters, top_k)
        return found


def _clauses(filters: dict[str, Any], negated: bool = False) -> Clauses:
    """Return what filters mean; a negated tree has its leaves negated (De Morgan)."""
    try:
        operator = str(filters["operator"])
        if "field" in filters:
            field = str(filters["field"]).removeprefix("meta.")
            known = "=" if operator == "==" else operator
            return leaf(field, known, filters["value"], negated=negated)
        inner = negated != (operator == "NOT")
        parts = [_clauses(part, inner) for part in filters["conditions"]]
    except (KeyError, TypeError) as exc:
        raise QueryError(
            "A filter has a field, an operator and a value, or an operator (AND, OR, NOT) and "
            f"conditions: {str(filters)[:80]} has not."
        ) from exc
    if operator not in ("AND", "OR", "NOT"):
        raise QueryError(f"The operator {operator!r} joins no filters: use AND, OR or NOT.")
    return any_of(parts) if (operator == "OR") != inner else all_of(parts)
