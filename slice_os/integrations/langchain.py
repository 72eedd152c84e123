"""A retriever and a vector store for LangChain (extra `langchain`).

>>> from slice_os.integrations.langchain import SliceRetriever  # doctest: +SKIP
>>> retriever = SliceRetriever(index=slice_os.open("demo.slice"), k=3)  # doctest: +SKIP
>>> retriever.invoke("wants to cancel")[0].metadata["spans"]  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from slice_os.api import Index
from slice_os.errors import MissingExtraError, QueryError
from slice_os.integrations.common import passage_metadata
from slice_os.types import Document as SliceDocument
from slice_os.types import Reject

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from pydantic import ConfigDict, Field
except ImportError as exc:
    raise MissingExtraError("Retrieving for LangChain", "langchain") from exc


class SliceRetriever(BaseRetriever):
    """Passages by spans and BM25, with the spans that matched in their metadata.

    Attributes:
        index: An open index; its owner closes it.
        k: How many passages.
        options: Parameters of every search (`slice_os.options.SearchOptions`), such as
            ``{"filters": ["year>=2020"], "min_degree": 0.7}``. Those of a call come first.
    """

    index: Index
    k: int = 10
    options: dict[str, Any] = Field(default_factory=dict)
    model_config = ConfigDict(arbitrary_types_allowed=True)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        **options: Any,
    ) -> list[Document]:
        chosen = {**self.options, **options, "size": self.k if k is None else k}
        return [
            Document(
                id=f"{hit.document}#{hit.passage}",
                page_content=hit.text,
                metadata=passage_metadata(hit),
            )
            for hit in self.index.search(query, **chosen)
        ]


class SliceVectorStore(VectorStore):
    """Whole documents in an index, found by their best span; scores are degrees of similarity.

    The index encodes the texts: no embeddings are given. Nested metadata comes back with dotted
    names.
    """

    def __init__(self, index: Index) -> None:
        """Use an open index, which its owner closes; it comes into being with the first text."""
        self.index = index

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **_: Any,
    ) -> list[str]:
        """Add texts, or replace those of the same ids; return the ids.

        Raises:
            QueryError: A text cannot be indexed: there is no word in it, say.
        """
        texts = list(texts)
        names = [name or str(uuid4()) for name in (ids or [""] * len(texts))]
        rejects: list[Reject] = []
        self.index.add(
            (
                SliceDocument(name, text, metadata=metadata)
                for name, text, metadata in zip(
                    names, texts, metadatas or [{} for _ in texts], strict=True
                )
            ),
            on_reject=rejects.append,
        )
        if rejects:
            raise QueryError(f"{rejects[0].place} was not added: {rejects[0].reason}.")
        return names

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Delete documents by their ids; those that are not there are no error."""
        if ids and self.index.location and len(self.index):
            self.index.delete(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents of these ids that there are."""
        if not len(self.index):
            return []
        return [found for name in ids if (found := self._document(name))]

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """Return the `k` documents whose best spans are nearest to a query."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **options)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Any = None, **options: Any
    ) -> list[tuple[Document, float]]:
        """Return the same with the degrees of similarity.

        `filter` is what `Index.search` takes: ``{"year": 2020}`` or ``["year>=2020"]``; `options`
        are those of `slice_os.options.SearchOptions`.
        """
        if not len(self.index):
            return []
        chosen = {"sort": "degree", "filters": filter or (), **options, "group": True, "size": k}
        best: dict[str, float] = {}
        for hit in self.index.search(query, **chosen):
            best.setdefault(hit.document, hit.degree)
        found = ((self._document(name), degree) for name, degree in best.items())
        return [(document, degree) for document, degree in found if document]

    def _document(self, name: str) -> Document | None:
        stored = self.index.get(name)
        if stored is None:
            return None
        return Document(id=name, page_content=stored.text, metadata=dict(stored.metadata))

    def _select_relevance_score_fn(self) -> Any:
        return float  # degrees are from 0 to 1

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        location: str = "",
        **options: Any,
    ) -> SliceVectorStore:
        """Return the store at a location, with these texts; `options` are those of `Index`.

        Raises:
            QueryError: There is no location, or an `embedding`, which nothing would use.
        """
        if not location or embedding is not None:
            raise QueryError("Give a location, and no embedding: the index encodes the texts.")
        store = cls(Index(location, **options))
        store.add_texts(texts, metadatas, ids=ids)
        return store
