"""A checkpoint's model in torch, pooled as the exported encoder pools: texts in, vectors out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slice_os.encoders import Encoder, EncoderInfo
from slice_os.encoders.judge import KINDS, SCALE, Placed, joined
from slice_os.encoders.tokens import TextTokenizer, TokenizedText, Uint8
from slice_os.errors import EncoderError
from slice_os.exporters.checkpoint import Checkpoint, load_checkpoint, projected_hash, weights_hash
from slice_os.types import Float32, Int32, Words

if TYPE_CHECKING:
    from torch import Tensor

FEW = 32
"""Texts that are run at once; those that are encoded alone by length, so that little is padded."""


EVEN = 8
"""Lengths of what is read together are multiples of this: a kernel is made for each new length."""


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """Word vectors of some texts, padded.

    `vectors` is float ``[B, N, d]``, zero past a text's words; `counts` int64 ``[B]``; `texts` hold
    the words' offsets.
    """

    vectors: Tensor
    counts: Tensor
    texts: list[TokenizedText]


class PooledModel:
    """A checkpoint's model and tokenizer: vectors with gradients.

    Attributes:
        model: The torch module.
        max_tokens: The longest text, special tokens included; the rest of a longer one is cut off.
        dimension: That of the vectors.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Take the model of `checkpoint`."""
        self.model = checkpoint.model
        self.max_tokens = checkpoint.max_tokens
        self.dimension, self._projection = checkpoint.dimension, checkpoint.projection
        self._names = self.model.forward.__code__.co_varnames
        self._pad = int(checkpoint.tokenizer.pad_token_id or 0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            checkpoint.tokenizer.backend_tokenizer.save(str(path))
            self._tokenizer = TextTokenizer(path)

    @property
    def weights_hash(self) -> str:
        """That of the weights as they are now."""
        return projected_hash(weights_hash(self.model), self._projection)

    def knows(self, text: str) -> bool:
        """Tell whether a text holds a token of the vocabulary."""
        return self._tokenizer.knows(text)

    def pieces(self, text: TokenizedText) -> tuple[Int32, Uint8]:
        """Return the wordpieces of a text's words (`TextTokenizer.pieces`)."""
        return self._tokenizer.pieces(text)

    def words(self, texts: Sequence[str], *, by_token: bool = False) -> WordVectors:
        """Return the word vectors of `texts` in their context, run as one batch.

        With `by_token`, each token is taken for a word.
        """
        import torch

        split = self._tokenizer.split(texts, by_token=by_token)
        hidden = self._hidden([text.ids for text in split])
        width, length, dimension = len(texts), hidden.shape[1], hidden.shape[2]
        kept = [_kept(text, length) for text in split]
        most = max((len(first) for first in kept), default=0)
        # Token t of text b goes to word `owner[b, t]`; what belongs to no word goes to a last row.
        owner = np.full((width, length), most, np.int64)
        for row, (text, first) in enumerate(zip(split, kept, strict=True)):
            if len(first):
                end = min(text.words.owned, length)
                sizes = np.diff(first, append=end)
                owner[row, first[0] : end] = np.repeat(np.arange(len(first)), sizes)
        index = torch.from_numpy(owner).to(hidden.device)[:, :, None].expand_as(hidden)
        sums = torch.zeros(
            (width, most + 1, dimension), dtype=hidden.dtype, device=hidden.device
        ).scatter_add(1, index, hidden)
        counts = torch.tensor([len(first) for first in kept], device=hidden.device)
        return WordVectors(sums[:, :most].float(), counts, split)

    def encode(self, texts: Sequence[str], *, unit: bool = True) -> Tensor:
        """Return the vectors of `texts`, each encoded alone, float ``[n, d]``.

        A vector is the mean of the text's own tokens', scaled to unit length unless `unit` is
        false. A text without tokens has a row of zeros.
        """
        import torch

        ids = [text.ids for text in self._tokenizer.whole(texts)]
        rows: list[Any] = [None] * len(ids)
        for together in _by_length(ids):
            hidden = self._hidden([ids[row] for row in together])
            sizes = torch.tensor([[len(ids[row])] for row in together], device=hidden.device)
            own = torch.arange(hidden.shape[1], device=hidden.device)[None] < sizes
            means = (hidden * own[:, :, None]).float().sum(dim=1) / sizes.clamp(min=1)
            for row, mean in zip(together, means, strict=True):
                rows[row] = mean
        if not rows:
            return torch.zeros(0, self.dimension)
        vectors = torch.stack(rows)
        return torch.nn.functional.normalize(vectors, dim=-1) if unit else vectors

    def judge(
        self, pairs: Sequence[tuple[str, Placed]], told: Sequence[bool] | None = None
    ) -> Tensor:
        """Return the logits of `KINDS` of pairs, ``[n, 8]``; `told` is as in `joined`."""
        import torch

        rows = joined(self._tokenizer, pairs, told)
        found: list[Any] = [None] * len(rows)
        for some in _by_length([ids for ids, _ in rows]):
            ids, types = zip(*(rows[row] for row in some), strict=True)
            for row, one in zip(some, self._run(ids, types, EVEN)[:, 0], strict=True):
                found[row] = one[: len(KINDS)]
        return SCALE * torch.stack(found).float()

    def _hidden(self, ids: list[Any]) -> Tensor:
        """Return the vectors of the texts' own tokens, ``[B, T, d]``; padding has any value."""
        import torch

        prefix, suffix = self._tokenizer.prefix, self._tokenizer.suffix
        most = self.max_tokens - len(prefix) - len(suffix)
        filled = [np.concatenate((prefix, row[:most], suffix)) for row in ids]
        hidden = self._run(filled, [np.zeros_like(row) for row in filled])
        hidden = hidden[:, len(prefix) : hidden.shape[1] - len(suffix)]
        if self._projection is None:
            return hidden
        return hidden @ torch.from_numpy(self._projection).to(hidden)

    def _run(self, ids: Sequence[Any], types: Sequence[Any], even: int = 1) -> Tensor:
        """Return the vectors of all tokens of rows of token ids and types, ``[B, T, d]``.

        T is a multiple of `even`.
        """
        import torch

        shape = len(ids), -(-max(map(len, ids)) // even) * even
        given = {
            "input_ids": np.full(shape, self._pad, np.int64),
            "attention_mask": np.zeros(shape, np.int64),
            "token_type_ids": np.zeros(shape, np.int64),
        }
        for row, (one, kinds) in enumerate(zip(ids, types, strict=True)):
            given["input_ids"][row, : len(one)] = one
            given["attention_mask"][row, : len(one)] = 1
            given["token_type_ids"][row, : len(one)] = kinds
        device = next(self.model.parameters()).device
        inputs = {
            name: torch.from_numpy(rows).to(device)
            for name, rows in given.items()
            if name != "token_type_ids" or name in self._names
        }
        hidden: Tensor = self.model(**inputs).last_hidden_state
        return hidden


def _by_length(ids: Sequence[Any]) -> Iterator[list[int]]:
    """Yield the numbers of a few rows at a time, the shortest first."""
    order = iter(sorted(range(len(ids)), key=lambda row: len(ids[row])))
    while together := list(islice(order, FEW)):
        yield together


class CheckpointEncoder(Encoder):
    """A checkpoint that encodes as it is, in torch and without gradients."""

    def __init__(self, model: PooledModel, name: str = "checkpoint") -> None:
        """Take a model, which may go on learning; `name` is what people call it."""
        self._model = model
        self._name = name

    @classmethod
    def load(cls, folder: Path, device: str = "auto", threads: int | None = None) -> Encoder:
        """Load the checkpoint in `folder`; torch itself is asked to run on fewer threads."""
        model = PooledModel(load_checkpoint(folder))
        import torch

        has_cuda = torch.cuda.is_available()
        encoder = cls(model, folder.resolve().name)
        encoder.device = ("cuda" if has_cuda else "cpu") if device == "auto" else device
        if encoder.device != "cpu" and not (encoder.device == "cuda" and has_cuda):
            raise EncoderError(
                f"The checkpoint {folder} cannot run on {device} here: use cpu, or export it."
            )
        model.model.requires_grad_(False).to(encoder.device)
        return encoder

    @cached_property
    def info(self) -> EncoderInfo:  # type: ignore[override]
        """Its weights hash is that of its exports whose axes are not turned."""
        model = self._model
        return EncoderInfo(
            self._name, "1", model.weights_hash, "fp32", model.dimension, model.max_tokens
        )

    def knows(self, text: str) -> bool:
        """Tell whether a text holds a token of the vocabulary."""
        return self._model.knows(text)

    def _vectors(self, texts: Sequence[str]) -> Float32:
        import torch

        with torch.no_grad():
            vectors: Float32 = self._model.encode(texts).cpu().numpy()
        return vectors

    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the words of each text with their vectors, in order."""
        return self._encode(texts, by_token=False)

    def encode_tokens(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the tokens of each text with their vectors, each with its word's characters."""
        return self._encode(texts, by_token=True)

    def _encode(self, texts: Iterable[str], *, by_token: bool) -> Iterator[Words]:
        import torch

        rest = iter(texts)
        while batch := list(islice(rest, FEW)):
            with torch.no_grad():
                encoded = self._model.words(batch, by_token=by_token)
            for text, count, vectors in zip(
                encoded.texts, encoded.counts, encoded.vectors, strict=True
            ):
                words = slice(int(count))
                own: Float32 = vectors[words].cpu().numpy()
                bounds = text.words.starts[words], text.words.ends[words]
                pieces, counts = self._model.pieces(text)
                counts = counts[words]
                yield Words(*bounds, own, pieces[: counts.sum(dtype=int)], counts)


def _kept(text: TokenizedText, tokens: int) -> Any:
    """Return the first tokens of the words that begin within `tokens` tokens."""
    return text.words.first[text.words.first < tokens]
