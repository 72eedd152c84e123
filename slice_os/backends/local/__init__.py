"""The embedded index: a folder with SQLite (documents, BM25) and vector segments beside it."""

from slice_os.backends.local.index import LocalBackend

__all__ = ["LocalBackend"]
