"""Vectors of texts encoded alone, each distinct text once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np

from slice_os.encoders.encoder import Encoder
from slice_os.text.normal_form import plain
from slice_os.types import Float32

KEPT = 1 << 15
"""Vectors that are remembered: 50 MB of 384 dimensions."""


class AloneVectors:
    """An encoder's vectors of texts by their words alone (`encoder.plain`), remembered."""

    def __init__(self, encoder: Encoder) -> None:
        """Remember nothing yet."""
        self.encoder = encoder
        self._lock = Lock()
        self._known: OrderedDict[str, Float32] = OrderedDict()

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return the unit vectors of texts, float32 ``[n, d]``, whatever their punctuation."""
        words = list(map(plain, texts))
        with self._lock:
            known = {one: self._known[one] for one in words if one in self._known}
        missing = [one for one in dict.fromkeys(words) if one not in known]
        if missing:
            known |= zip(missing, self.encoder.encode(missing), strict=True)
            with self._lock:
                for one in missing:
                    self._known[one] = known[one].copy()  # not a view of all of them
                while len(self._known) > KEPT:
                    self._known.popitem(last=False)
        if not words:
            return np.zeros((0, self.encoder.info.dimension), np.float32)
        return np.stack([known[one] for one in words])
