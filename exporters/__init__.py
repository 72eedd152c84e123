"""Checkpoint to ONNX encoder folder (installed as `slice_os.exporters`).

Importing this package loads neither torch nor transformers; `export` does.
"""

from slice_os.exporters.folder import export

__all__ = ["export"]
