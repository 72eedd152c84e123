"""An encoder from outside the package: hashed character trigrams."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import numpy as np

from slice_os.encoders import Encoder, EncoderInfo
from slice_os.types import Words


class Trigrams(Encoder):
    """A word is the sum of its trigrams' random vectors, so like words are alike."""

    loaded = 0

    def __init__(self, folder: Path, device: str, threads: int | None) -> None:
        type(self).loaded += 1
        settings = json.loads((folder / "trigrams.json").read_text())
        self.info = EncoderInfo("trigrams", "1", f"trigrams-{settings}", "fp32", **settings)
        self.closed = False

    def close(self):
        self.closed = True

    def encode_words(self, texts):
        for text in texts:
            found = list(re.finditer(r"\S+", text))
            vectors = np.zeros((len(found), self.info.dimension), np.float32)
            for row, word in enumerate(found):
                padded = f"<{word.group().lower()}>"
                for start in range(len(padded) - 2):
                    seed = zlib.crc32(padded[start : start + 3].encode())
                    vectors[row] += np.random.default_rng(seed).standard_normal(self.info.dimension)
            starts, ends = np.array([word.span() for word in found], np.int32).reshape(-1, 2).T
            yield Words(starts, ends, vectors)
