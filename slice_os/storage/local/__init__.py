"""The embedded index: a folder with SQLite (documents, BM25) and vector segments beside it."""

from slice_os.storage.local.read import LocalBackend

__all__ = ["LocalBackend"]
