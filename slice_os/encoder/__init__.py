"""Encoders: texts in, word vectors out; the kinds of encoder, and the packaged one.

Importing this package loads neither onnxruntime nor tokenizers; `load_encoder` does.
"""

from slice_os.encoder.encoder import (
    ENCODERS,
    Encoder,
    EncoderKind,
    EncoderLike,
    encoder_info,
    load_encoder,
    open_encoder,
)
from slice_os.encoder.info import EncoderInfo

__all__ = [
    "ENCODERS",
    "Encoder",
    "EncoderInfo",
    "EncoderKind",
    "EncoderLike",
    "encoder_info",
    "load_encoder",
    "open_encoder",
]
