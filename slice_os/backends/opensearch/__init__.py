"""An index in an OpenSearch cluster: BM25 fields and span vectors side by side."""

from slice_os.backends.opensearch.index import OpenSearchBackend

__all__ = ["OpenSearchBackend"]
