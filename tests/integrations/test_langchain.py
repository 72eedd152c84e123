"""The retriever and the vector store for LangChain, by LangChain's own tests."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

import slice_os
from slice_os.errors import QueryError
from slice_os.integrations.langchain import SliceRetriever, SliceVectorStore
from support.calls import check_spans


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _index(self, index):
        self.index = index

    @property
    def retriever_constructor(self):
        return SliceRetriever

    @property
    def retriever_constructor_params(self):
        return {"index": self.index}

    @property
    def retriever_query_example(self):
        return "wants to cancel"


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path):
        with slice_os.open(tmp_path / "store.slice") as index:
            yield SliceVectorStore(index)


def test_what_matched_is_in_the_metadata(index):
    retriever = SliceRetriever(index=index, k=2, options={"filters": ["year>=2024"]})
    first, second = retriever.invoke("stop being a customer")
    check_spans(first.page_content, first.metadata)
    assert {first.metadata["document"], second.metadata["document"]} == {"call-2", "call-3"}
    assert retriever.invoke("parcel", filters={"kind": "a"})[0].metadata["document"] == "call-1"


def test_scores_are_degrees_and_a_retriever_may_have_a_threshold(tmp_path):
    texts = ["I want to cancel my plan.", "The weather is fine.", "He wants to end his contract."]
    store = SliceVectorStore.from_texts(
        texts, metadatas=[{"n": n} for n in range(3)], location=str(tmp_path / "own.slice")
    )
    found = store.similarity_search_with_score("cancel my plan", k=3)
    assert found[0][1] == pytest.approx(1, abs=1e-5)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    kept = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9}
    ).invoke("cancel my plan")
    assert [document.page_content for document in kept] == texts[:1]
    assert store.similarity_search("plan", filter={"n": 2})[0].page_content == texts[2]
    with pytest.raises(QueryError, match="no word"):
        store.add_documents([Document(page_content=" ")])
    store.index.close()
