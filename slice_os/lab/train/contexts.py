"""The sentences in which words are looked at, of which a static encoder is made.

Of each word up to `candidates` sentences are drawn and the shortest `contexts` of them kept (Wada
et al., 2025, sections 2.1 and 2.3): in long ones a word's vector says more of the other words. All
words' sentences are one set, each of which is encoded once.

A teacher is run over them once, for word vectors, and sentence vectors to learn from. A word's
vector is the mean over its contexts of the mean of its tokens' vectors; a word of few contexts has
the vector that the teacher gives it alone, which the paper, of a web corpus, does not need.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import regex
import torch

from slice_os.corpus import read
from slice_os.encoders import Encoder
from slice_os.errors import CorpusError, TrainingError
from slice_os.exporters.graph import APOSTROPHE, WORD
from slice_os.lab.train.recipe import Static
from slice_os.text import sentence_ends, split
from slice_os.types import Float32, Words

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_WORD = regex.compile(WORD)
_RUN = regex.compile(r"\S+")


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """Sentences in random order and the words in them.

    Attributes:
        words: The vocabulary, lower-cased, the most frequent first.
        texts: The sentences, a space around each word and each run of punctuation.
        ids: int64; the words of all sentences one after the other, as rows of `words`. A word that
            is not in `words` has the row of its longest prefix that is, or -1.
        bounds: int64 ``[S + 1]``: sentence k has the words ``ids[bounds[k]:bounds[k + 1]]``.
        chosen: bool, for each of `ids`: whether it is one of its word's contexts.
    """

    words: list[str]
    texts: list[str]
    ids: Int64
    bounds: Int64
    chosen: Bools


def read_contexts(sources: Sequence[Path], wanted: Static, seed: int) -> Contexts:
    """Read the sentences of texts, as `slice_os.read` reads them; choose each word's contexts."""
    known: dict[str, int] = {}
    texts: dict[str, None] = {}
    flat, bounds = array("q"), array("q", [0])
    for sentence in (one for path in sources for one in _sentences(path)):
        text = apart(sentence)
        words = words_in(text)
        if words and text not in texts:
            texts[text] = None
            flat.extend(known.setdefault(word, len(known)) for _, word in words)
            bounds.append(len(flat))
    every, ids, starts = [*texts], np.array(flat, np.int64), np.array(bounds, np.int64)
    sizes = starts[1:] - starts[:-1]
    ranks = np.random.default_rng(seed).permutation(len(every)).argsort()
    kept, rows, whole = _vocabulary(list(known), np.bincount(ids, minlength=1), wanted.words)
    ids, whole = rows[ids], whole[ids]
    lengths = np.array([text.count(" ") + 1 for text in every], np.int64)
    # What a prefix stands in for is no context of it.
    own = np.where(whole, ids, -1)
    pairs = _choose(own, np.repeat(ranks, sizes), np.repeat(lengths, sizes), wanted)
    if len(pairs) == 0 or np.bincount(ids[pairs]).max() < 2:
        raise TrainingError(
            "No word of the recipe's texts occurs in two different sentences, so there is nothing "
            "to learn: give more text."
        )
    chosen = np.zeros(len(ids), bool)
    chosen[pairs] = True
    found = np.flatnonzero(np.logical_or.reduceat(chosen, starts[:-1]))
    found = found[np.lexsort((ranks[found], lengths[found]))][: wanted.sentences]
    found = found[ranks[found].argsort()]
    taken = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in found])
    ends = np.concatenate(([0], np.cumsum(sizes[found])))
    return Contexts(kept, [every[k] for k in found], ids[taken], ends, chosen[taken])


def apart(text: str) -> str:
    """Return a text with one space around each word and each run of what is no word."""
    plain = normalize("NFC", text).replace(APOSTROPHE, "'")
    return " ".join(_WORD.sub(r" \g<0> ", plain).split())


def words_in(text: str) -> list[tuple[int, str]]:
    """Return the words of a text, lower-cased, and where each begins."""
    return [(one.start(), one.group().lower()) for one in _WORD.finditer(text)]


def sentences_in(text: str) -> Iterator[str]:
    """Yield the sentences of a text."""
    runs = [run.span() for run in _RUN.finditer(text)]
    ends = np.array([end for _, end in runs])
    for i, j in pairwise(np.flatnonzero(sentence_ends(text, ends)).tolist()):
        yield text[runs[i][0] : runs[j - 1][1]]


def _sentences(path: Path) -> Iterator[str]:
    try:
        for document in read(str(path)):
            for passage in split(document):
                yield from sentences_in(passage.text)
    except CorpusError as exc:
        raise TrainingError(f"The text {path} cannot be used: {exc}") from exc


def _vocabulary(words: list[str], counts: Int64, most: int) -> tuple[list[str], Int64, Bools]:
    """Return the most frequent words, each word's row in them (-1: none), and whether it is its."""
    first = np.argsort(-counts[: len(words)], kind="stable")[:most].tolist()
    kept = [words[k] for k in first]
    rows = {word: row for row, word in enumerate(kept)}

    def row_of(word: str) -> int:
        prefixes = (word[:end] for end in range(len(word), 0, -1))
        return next((rows[prefix] for prefix in prefixes if prefix in rows), -1)

    whole = np.array([word in rows for word in words], np.bool_)
    return kept, np.array([row_of(word) for word in words], np.int64), whole


def _choose(words: Int64, orders: Int64, lengths: Int64, wanted: Static) -> Int64:
    """Return the places of the occurrences that are contexts; a sentence counts once a word."""
    places = np.lexsort((orders, words))
    places = places[words[places] >= 0]
    first = np.ones(len(places), bool)
    first[1:] = (np.diff(words[places]) != 0) | (np.diff(orders[places]) != 0)
    places = places[first]
    places = places[_nth(words[places]) < wanted.candidates]
    places = places[np.lexsort((orders[places], lengths[places], words[places]))]
    return places[_nth(words[places]) < wanted.contexts]


def _nth(groups: Int64) -> Int64:
    """Return, of neighbouring equal numbers, how many came before each."""
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    return np.arange(len(groups)) - np.repeat(begins, np.diff(begins, append=len(groups)))


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
        """Encode the texts that are left, and save the state now and then, and at an interrupt.

        `progress` is told how many texts are encoded, of how many, and the words a second.
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
