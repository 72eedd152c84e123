"""One run of a teacher over all contexts: word vectors, and sentence vectors to learn from.

A word's vector is the mean over its contexts of the mean of its tokens' vectors (Wada et al.,
2025, section 2.1). A word of few contexts has the vector that the teacher gives it alone, which the
paper, of a web corpus, does not need.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch

from slice_os.encoders import Encoder
from slice_os.lab.train.contexts import Contexts, words_in
from slice_os.types import Float32, Words

SECONDS = 60
"""Between states that a killed run goes on from."""
BLOCK = 512
"""Texts that count together."""


class Extraction:
    """The sums of what the teacher said so far.

    Attributes:
        texts: What is encoded: the sentences, then the rare words alone.
        done: How many of them are encoded.
        sums: float32 ``[V, d]``, of each word's vectors.
        counts: float32 ``[V]``, how many there are.
        sentences: float16 ``[S, d]``, the sentences' unit vectors.
    """

    def __init__(self, contexts: Contexts, rare: int, dimension: int) -> None:
        """Prepare to encode `contexts`; words of fewer than `rare` of them are encoded alone."""
        self._contexts = contexts
        found = np.bincount(contexts.ids[contexts.chosen], minlength=len(contexts.words))
        self._alone = np.flatnonzero(found < rare)
        self._is_rare = found < rare
        self.texts = [*contexts.texts, *(contexts.words[row] for row in self._alone)]
        self.done = 0
        self.sums = np.zeros((len(contexts.words), dimension), np.float32)
        self.counts = np.zeros(len(contexts.words), np.float32)
        self.sentences = np.zeros((len(contexts.texts), dimension), np.float16)

    def run(
        self,
        teacher: Encoder,
        save: Callable[[dict[str, Any]], None],
        progress: Callable[[int, int, float], None],
    ) -> None:
        """Encode the texts that are left.

        Args:
            teacher: What encodes them.
            save: Takes the state now and then, and at an interrupt.
            progress: Told how many texts are encoded, of how many, and the words a second.
        """
        begun = saved = time.monotonic()
        words, whole = 0, True
        try:
            tokens = iter(teacher.encode_tokens(self.texts[self.done :]))
            while block := list(islice(tokens, BLOCK)):
                whole = False
                words += self._add(block)
                whole = True
                now = time.monotonic()
                progress(self.done, len(self.texts), words / max(now - begun, 1e-9))
                if now - saved > SECONDS:
                    save(self.state())
                    saved = now
        except KeyboardInterrupt:
            if whole:
                save(self.state())
            raise

    def state(self) -> dict[str, Any]:
        """Return what `restore` takes."""
        arrays = {"sums": self.sums, "counts": self.counts, "sentences": self.sentences}
        return {"done": self.done} | {k: torch.from_numpy(v) for k, v in arrays.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.done = state["done"]
        self.sums, self.counts, self.sentences = (
            state[name].numpy() for name in ("sums", "counts", "sentences")
        )

    def vectors(self) -> Float32:
        """Return the words' vectors, float32 ``[V, d]``; of a word that is no token, zeros."""
        counts = np.maximum(self.counts, 1)[:, None]
        means: Float32 = np.divide(self.sums, counts, dtype=np.float32)
        return means

    def _add(self, block: list[Words]) -> int:
        """Add what the teacher said of the next texts; return their words."""
        rows: list[int] = []
        vectors: list[Float32] = []
        words = 0
        for place, tokens in enumerate(block, start=self.done):
            for row, vector in self._words(place, tokens):
                rows.append(row)
                vectors.append(vector)
            if place < len(self.sentences):
                total = tokens.vectors.sum(axis=0)
                self.sentences[place] = total / max(float(np.linalg.norm(total)), 1e-9)
            words += len(np.unique(tokens.starts))
        if rows:
            np.add.at(self.sums, rows, np.stack(vectors))
            np.add.at(self.counts, rows, np.float32(1))
        self.done += len(block)
        return words

    def _words(self, place: int, tokens: Words) -> Iterator[tuple[int, Float32]]:
        """Yield the rows of the words that a text is a context of, each with its vector there."""
        if not len(tokens):
            return
        if place >= len(self.sentences):
            yield int(self._alone[place - len(self.sentences)]), tokens.vectors.mean(axis=0)
            return
        contexts = self._contexts
        own = slice(contexts.bounds[place], contexts.bounds[place + 1])
        wanted = contexts.chosen[own] & ~self._is_rare[contexts.ids[own]]
        if not wanted.any():
            return
        starts, firsts = np.unique(tokens.starts, return_index=True)
        ends = np.append(firsts[1:], len(tokens))
        begins = [start for start, _ in words_in(self.texts[place])]
        for row, begin, counts in zip(contexts.ids[own].tolist(), begins, wanted, strict=True):
            at = int(starts.searchsorted(begin))
            if counts and at < len(starts) and starts[at] == begin:
                yield row, tokens.vectors[firsts[at] : ends[at]].mean(axis=0)
