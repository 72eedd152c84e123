"""Encoders: texts in, word vectors out; the kinds of encoder, and the packaged one.

Importing this package loads neither onnxruntime nor tokenizers; `load_encoder` does.
"""

from slice_os.encoder.encoder import ENCODERS as ENCODERS
from slice_os.encoder.encoder import Encoder as Encoder
from slice_os.encoder.encoder import EncoderKind as EncoderKind
from slice_os.encoder.encoder import EncoderLike as EncoderLike
from slice_os.encoder.encoder import encoder_info as encoder_info
from slice_os.encoder.encoder import load_encoder as load_encoder
from slice_os.encoder.encoder import open_encoder as open_encoder
from slice_os.encoder.info import EncoderInfo as EncoderInfo
