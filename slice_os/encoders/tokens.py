"""The tokenizer of an encoder folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.encoders.devices import MissingRuntimeError
from slice_os.errors import EncoderError
from slice_os.text.normal_form import aligned_normal_form, as_typed, is_mark, normal_form
from slice_os.types import Int32

Int64 = npt.NDArray[np.int64]

_SCRIPTS = ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")


class WordMap(NamedTuple):
    """Which tokens make which word of a text.

    Word i has characters ``starts[i]:ends[i]`` (int32) and tokens ``first[i]:first[i + 1]``
    (int64), the last word up to `owned`. Tokens from `owned` on (white space) have no word.
    """

    first: Int64
    starts: Int32
    ends: Int32
    owned: int

    @property
    def by_token(self) -> WordMap:
        """The same with each token on its own, which has its word's characters."""
        sizes = np.diff(self.first, append=self.owned)
        starts, ends = np.repeat(self.starts, sizes), np.repeat(self.ends, sizes)
        return WordMap(np.arange(self.owned), starts, ends, self.owned)


@lru_cache(maxsize=1)
def _patterns() -> tuple[Any, Any, Any]:
    """Return the patterns of a run without spaces, of a spaceless script, and of both's pieces."""
    import regex

    # Script extensions, so that the long vowel mark belongs to kana; without punctuation, because
    # the middle dot of Catalan and Greek counts among Han's extensions.
    scripts = "".join(rf"\p{{scx={name}}}" for name in _SCRIPTS)
    dense = rf"[[{scripts}]--[\p{{P}}\p{{S}}]]"
    spaced = rf"[\S--[{dense}]]"
    return (
        regex.compile(r"\S+"),
        regex.compile(f"(?V1){dense}"),
        regex.compile(f"(?V1)(?P<dense>{dense}+)|{spaced}+"),
    )


def words_of(text: str, tokens: Int32) -> WordMap:
    r"""Assign tokens to words.

    A word is a run of non-space characters (``\S+``); inside such a run every token of a script
    that is written without spaces is a word of its own. A token belongs to the word that holds its
    start or, where it starts in white space (as SentencePiece's do), to the next word. Words
    without a token are left out.

    Args:
        text: The text.
        tokens: int32 ``[T, 2]``: start and end of each token, in order.
    """
    run, dense, _ = _patterns()
    bounds = np.array([m.span() for m in run.finditer(text)], np.int32).reshape(-1, 2)
    # Tokens never go back in a text; a normaliser that reorders marks must not break the search.
    starts = np.maximum.accumulate(tokens[:, 0])
    if not text.isascii() and dense.search(text):
        # A token that begins in white space counts from the word after it.
        run_of = bounds[:, 1].searchsorted(starts, side="right")
        inside = run_of < len(bounds)
        starts[inside] = np.maximum(starts[inside], bounds[run_of[inside], 0])
        bounds = _split_dense(text, bounds, starts, tokens[:, 1])
    word = bounds[:, 1].searchsorted(starts, side="right")
    owned = int(word.searchsorted(len(bounds)))
    word = word[:owned]
    first = np.flatnonzero(np.diff(word, prepend=-1))
    kept = bounds[word[first]]
    return WordMap(first, kept[:, 0], kept[:, 1], owned)


def _split_dense(text: str, runs: Int32, starts: Int32, ends: Int32) -> Int32:
    """Return int32 ``[N, 2]``: `runs`, cut at every token of a spaceless script.

    A character that no token starts at goes with the word before it (a mark that the normaliser
    drops, the tail of a token that began in another script).
    """
    begins = np.unique(starts)
    # A token may start in one piece and end in the next: the next piece then starts after it.
    reach = np.zeros(len(begins), np.int32)
    np.maximum.at(reach, begins.searchsorted(starts), ends)
    cuts: set[int] = set()
    for piece in _patterns()[2].finditer(text):
        start, end = piece.span()
        low, high = begins.searchsorted([start, end])
        inside = begins[low : high if piece["dense"] is not None else min(low + 1, high)].tolist()
        if inside and (low == 0 or reach[low - 1] <= start):
            inside[0] = start
        cuts.update(inside)
    cuts.update(runs[:, 0].tolist())
    bounds: list[tuple[int, int]] = []
    ordered = np.array(sorted(cuts), np.int32)
    for low, high in runs.tolist():
        inside = ordered[slice(*ordered.searchsorted([low, high]))].tolist()
        bounds.extend(pairwise([*inside, high]))
    return np.array(bounds, np.int32).reshape(-1, 2)


Uint8 = npt.NDArray[np.uint8]
_JOINED = ("##", "▁", "Ġ")
"""What tokenizers write before a piece to say how it is joined to the one before it."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedText:
    """The token ids of one text, int64 ``[T]`` without special tokens, and its words."""

    text: str
    ids: Int64
    words: WordMap


class TextTokenizer:
    """A fast tokenizer that loses no token: no truncation, no padding.

    Attributes:
        prefix: int64 ids of the special tokens that go before a text.
        suffix: int64 ids of those that go after it.
    """

    def __init__(self, path: Path) -> None:
        """Load `path`.

        Raises:
            EncoderError: The file is not a usable tokenizer.
            MissingExtraError: The tokenizers package is not installed.
        """
        try:
            from tokenizers import Tokenizer
        except ImportError as exc:
            raise MissingRuntimeError("tokenizers") from exc
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            probe = self._tokenizer.encode("a")
        except Exception as exc:  # tokenizers raises plain Exception
            raise EncoderError(
                f"{path} is not a usable tokenizer ({exc})",
                hint="export the encoder again with slice-os export.",
            ) from exc
        model = self._tokenizer.model
        names = (getattr(model, "unk_token", None), "[UNK]", "<unk>")
        ids_of = (self._tokenizer.token_to_id(name) for name in names if name)
        self._unknown: int | None = next((id_ for id_ in ids_of if id_ is not None), None)
        special = np.array(probe.special_tokens_mask, np.int64)
        ordinary = np.flatnonzero(special == 0)
        ids = np.array(probe.ids, np.int64)
        if not len(ordinary):
            raise EncoderError(
                f"{path} makes no token of the letter a, so it is not a usable tokenizer",
                hint="export the encoder again with slice-os export.",
            )
        self.prefix: Int64 = ids[: ordinary[0]]
        self.suffix: Int64 = ids[ordinary[-1] + 1 :]

    def knows(self, text: str) -> bool:
        """Tell whether any token of a text is one of the vocabulary's."""
        (encoded,) = self._batch([normal_form(text)], offsets=False)
        return any(token != self._unknown for token in encoded.ids)

    def split(self, texts: Sequence[str], *, by_token: bool = False) -> list[TokenizedText]:
        """Tokenize `texts` and find their words, or take each token for one."""
        tokenized = []
        aligned = [(text, []) if text.isascii() else aligned_normal_form(text) for text in texts]
        encodings = self._batch([normal for normal, _ in aligned], offsets=True)
        for text, (_, places), encoding in zip(texts, aligned, encodings, strict=True):
            offsets = _offsets(encoding)
            words = words_of(text, _placed(offsets, places) if places else offsets)
            words = words.by_token if by_token else words
            tokenized.append(TokenizedText(text, np.array(encoding.ids, np.int64), words))
        return tokenized

    def whole(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Tokenize `texts`, each as one word (none where it has no token); offsets are not told."""
        encoded = self._batch([normal_form(text).strip() for text in texts], offsets=False)
        tokenized = []
        for text, encoding in zip(texts, encoded, strict=True):
            ids = np.array(encoding.ids, np.int64)
            first = np.zeros(min(1, len(ids)), np.int64)
            words = WordMap(first, first.astype(np.int32), first.astype(np.int32), len(ids))
            tokenized.append(TokenizedText(text, ids, words))
        return tokenized

    @cached_property
    def _marks(self) -> npt.NDArray[np.bool_]:
        """Which tokens of the vocabulary are punctuation, bool ``[V]``."""
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        marks = np.zeros(max(vocabulary.values()) + 1, bool)
        for token, row in vocabulary.items():
            bare = token
            for prefix in _JOINED:
                bare = bare.removeprefix(prefix)
            marks[row] = is_mark(bare)
        return marks

    @property
    def vocabulary(self) -> int:
        """How many token ids there are."""
        return len(self._marks)

    def pieces(self, text: TokenizedText) -> tuple[Int32, Uint8]:
        """Return the wordpieces of a text's words, int32 ``[T]``, and how many are each word's.

        Punctuation at a word's edges is none of them: "(refund)" has those of "refund".
        """
        first, owned = text.words.first, text.words.owned
        ids = text.ids[:owned]
        if not len(first):
            return ids.astype(np.int32), np.zeros(0, np.uint8)
        place = np.arange(first[0], owned)
        ids = ids[first[0] :]
        speaks = ~self._marks[ids]
        begins = first - first[0]
        low = np.minimum.reduceat(np.where(speaks, place, owned), begins)
        high = np.maximum.reduceat(np.where(speaks, place, -1), begins)
        sizes = np.diff(first, append=owned)
        low = np.repeat(low, sizes)
        kept = (place >= low) & (place <= np.repeat(high, sizes)) & (place < low + 255)
        counts = np.add.reduceat(kept, begins, dtype=np.int64)
        return ids[kept].astype(np.int32), counts.astype(np.uint8)

    def _batch(self, texts: Sequence[str], *, offsets: bool) -> list[Any]:
        tokenizer = self._tokenizer
        texts = [text if text.isascii() else as_typed(text) for text in texts]
        call: Any = tokenizer.encode_batch if offsets else tokenizer.encode_batch_fast
        try:
            encoded: list[Any] = call(texts, add_special_tokens=False)
        except (TypeError, UnicodeError):
            # A lone surrogate cannot leave Python as UTF-8. One character for one keeps offsets.
            encoded = call([_without_surrogates(text) for text in texts], add_special_tokens=False)
        return encoded


def _offsets(encoding: Any) -> Int32:
    pairs = encoding.offsets
    flat = np.fromiter(chain.from_iterable(pairs), np.int32, 2 * len(pairs))
    return flat.reshape(-1, 2)


def _placed(offsets: Int32, places: list[tuple[int, int]]) -> Int32:
    """Return offsets ``[T, 2]`` into a normal form as offsets into the text that it is of."""
    starts, ends = np.array([*places, (places[-1][1],) * 2], np.int32).T
    last = np.maximum(offsets[:, 1] - 1, offsets[:, 0])
    return np.stack([starts[offsets[:, 0]], ends[last]], axis=1)


def _without_surrogates(text: str) -> str:
    # UTF-16 would pair two neighbouring surrogates and move offsets; UTF-32 never does.
    return text.encode("utf-32", "surrogatepass").decode("utf-32", "replace")
