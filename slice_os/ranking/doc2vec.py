"""Doc2vec: one vector per document, trained on the documents that are ranked.

Le and Mikolov (ICML 2014), distributed memory, as gensim trains it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from slice_os.errors import MissingExtraError
from slice_os.ranking.baselines import vector_scores
from slice_os.records import Float32

DIMENSION = 100
EPOCHS = 100
"""Fewer suffice for many documents; of some hundred, 20 leave the vectors nearly random."""


class Doc2Vec:
    """Vectors of some texts, float32 of 100 dimensions; the same texts and seed give the same.

    Raises:
        MissingExtraError: It needs the extra ``ranking``.
    """

    def __init__(self, texts: Sequence[str], seed: int = 0) -> None:
        try:
            from gensim.models import doc2vec
            from gensim.utils import simple_preprocess
        except ModuleNotFoundError as exc:
            raise MissingExtraError("Doc2vec", "ranking") from exc
        self._seed = seed
        self._words = simple_preprocess
        tagged = [doc2vec.TaggedDocument(self._words(text), [k]) for k, text in enumerate(texts)]
        # One worker and a hash of our own: threads and Python's salted hashes change the vectors.
        self._model = doc2vec.Doc2Vec(
            tagged,
            vector_size=DIMENSION,
            epochs=EPOCHS,
            min_count=1,
            workers=1,
            seed=seed,
            hashfxn=_hash,
        )

    def scores(self, query: str) -> Float32:
        """Return the cosine of each document with the query's inferred vector, float32 ``[D]``."""
        self._model.random.seed(self._seed)
        return vector_scores(self._model.infer_vector(self._words(query)), self._model.dv.vectors)


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())
