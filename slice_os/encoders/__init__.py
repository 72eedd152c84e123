"""Encoders: texts in, word vectors out; the kinds of encoder, and the packaged one.

Importing this package loads neither onnxruntime nor tokenizers; `load_encoder` does.
"""

from slice_os.encoders.encoder import ENCODERS as ENCODERS
from slice_os.encoders.encoder import Encoder as Encoder
from slice_os.encoders.encoder import EncoderKind as EncoderKind
from slice_os.encoders.encoder import EncoderLike as EncoderLike
from slice_os.encoders.encoder import StandaloneVectors as StandaloneVectors
from slice_os.encoders.encoder import encoder_info as encoder_info
from slice_os.encoders.encoder import load_encoder as load_encoder
from slice_os.encoders.encoder import open_encoder as open_encoder
from slice_os.encoders.info import EncoderInfo as EncoderInfo
