"""Texts in, word vectors out: the encoder folder, its ONNX session, batching and pooling.

Importing this package loads neither onnxruntime nor tokenizers; `load_encoder` does.
"""

from slice_os.encoder.encoder import Encoder, load_encoder
from slice_os.encoder.info import EncoderInfo, encoder_info

__all__ = ["Encoder", "EncoderInfo", "encoder_info", "load_encoder"]
