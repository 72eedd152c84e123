"""slice-os: every span of 1 to 20 words of a text is searchable, next to BM25.

    import slice_os

    index = slice_os.open("demo.slice")
    index.add(slice_os.read("corpus/"))
    for hit in index.search("wants to cancel", size=10):
        print(hit.degree, hit.spans[0].text, hit.text)

Importing this loads neither a model nor its runtime; names are looked up when they are used.
"""

import os
from pathlib import Path

import lazy_loader

# A wheel holds exporters and index_templates; in a checkout they lie beside this folder.
if not (_HERE := Path(__file__).parent).joinpath("exporters").is_dir():
    __path__.append(str(_HERE.parent))

# onnxruntime reports to Microsoft what it runs, and keeps files for that in the user's home, unless
# it is told before it is loaded that it may not.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__.remove("open")  # so that "from slice_os import *" leaves Python's own
