"""Several encoders' vectors joined, to see what they know together. Not for an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from slice_os.encoders import Encoder, EncoderInfo
from slice_os.errors import EncoderError
from slice_os.types import Float32, Words


class Ensemble(Encoder):
    """Wada et al. (2025), equation 1: each encoder's vector at unit length, weighted and joined.

        E(z) = [a_1 f(E_1(z)), ..., a_L f(E_L(z))] / sqrt(sum a_i^2),    f(x) = x / |x|

    so that a cosine is the mean of the encoders' cosines, weighted by a_i^2. A joined vector is no
    sum of words' vectors, since each block has a norm of its own: texts can be encoded, spans in
    their context cannot. The encoders stay their owners' to close.
    """

    def __init__(self, encoders: Sequence[Encoder], weights: Sequence[float] = ()) -> None:
        """Join `encoders`; `weights` are the a_i, 1 each by default.

        Raises:
            EncoderError: There is no encoder, or not a weight above 0 for each.
        """
        self._weights = [*weights] or [1.0] * len(encoders)
        if not encoders or len(self._weights) != len(encoders) or min(self._weights) <= 0:
            raise EncoderError(
                f"{len(encoders)} encoders cannot be joined by the weights {self._weights}: give "
                "one above 0 for each."
            )
        self._encoders = encoders
        infos = [encoder.info for encoder in encoders]
        self.info = EncoderInfo(
            name=" + ".join(info.name for info in infos),
            version="1",
            weights_hash="+".join(info.weights_hash for info in infos),
            precision="fp32",
            dimension=sum(info.dimension for info in infos),
        )

    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Refuse: see the class.

        Raises:
            EncoderError: Always.
        """
        raise EncoderError(
            f"{self.info.name} encodes whole texts, not words in context: give one encoder."
        )

    def _vectors(self, texts: Sequence[str]) -> Float32:
        blocks = zip(self._weights, self._encoders, strict=True)
        joined = [np.float32(weight) * encoder.encode(texts) for weight, encoder in blocks]
        return np.concatenate(joined, axis=1)
