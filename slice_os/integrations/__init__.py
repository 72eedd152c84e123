"""Retrievers for LangChain, Haystack and LlamaIndex: a module and an extra each."""
