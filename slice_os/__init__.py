"""slice-os: every span of 1 to 20 words of a text is searchable, next to BM25.

    import slice_os

    index = slice_os.open("demo.slice")
    index.add(slice_os.read("corpus/"))
    for hit in index.search("wants to cancel", size=10):
        print(hit.degree, hit.spans[0].text, hit.text)

Importing this loads neither a model nor its runtime; names are looked up when they are used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from slice_os.lazy import lazy_names

# A wheel holds exporters and index_templates; in a checkout they lie beside this folder.
if not (_HERE := Path(__file__).parent).joinpath("exporters").is_dir():
    __path__.append(str(_HERE.parent))

# onnxruntime reports to Microsoft what it runs, and keeps files for that in the user's home, unless
# it is told before it is loaded that it may not.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from slice_os.api import Index, index
    from slice_os.api import open as open
    from slice_os.backends import ClusterSettings
    from slice_os.backends.opensearch.source import read_index
    from slice_os.corpus import read
    from slice_os.diagnosis import doctor
    from slice_os.encoder import encoder_info, load_encoder
    from slice_os.errors import SliceOSError
    from slice_os.evaluation import (
        build_context,
        calibrate,
        evaluate_context,
        evaluate_phrases,
        evaluate_retrieval,
        evaluate_spans,
    )
    from slice_os.exporters import export
    from slice_os.records import (
        Document,
        DocumentInfo,
        Excerpt,
        Hit,
        Match,
        Passage,
        Reject,
        SpanMatch,
    )
    from slice_os.request import build_request
    from slice_os.templates import apply_template, list_templates, show_template
    from slice_os.training import train

__version__ = "0.1.0"

__all__ = [
    "ClusterSettings",
    "Document",
    "DocumentInfo",
    "Excerpt",
    "Hit",
    "Index",
    "Match",
    "Passage",
    "Reject",
    "SliceOSError",
    "SpanMatch",
    "apply_template",
    "build_context",
    "build_request",
    "calibrate",
    "doctor",
    "encoder_info",
    "evaluate_context",
    "evaluate_phrases",
    "evaluate_retrieval",
    "evaluate_spans",
    "export",
    "index",
    "list_templates",
    "load_encoder",
    "read",
    "read_index",
    "show_template",
    "train",
]
# Without "open", so that "from slice_os import *" leaves Python's own.

__getattr__, __dir__ = lazy_names(__name__, __file__)
