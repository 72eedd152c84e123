"""A judge that is a model: an encoder's graph that reads the query and the span together.

The first component of its first token says how far the degree is too high.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from slice_os.encoders.batching import Pool
from slice_os.encoders.encoder import Encoder
from slice_os.encoders.info import GRAPH, TOKENIZER, EncoderInfo
from slice_os.encoders.judge import Floats, Judge, Placed
from slice_os.encoders.onnx import Graph, shared, usable_cores
from slice_os.encoders.tokens import TextTokenizer
from slice_os.errors import EncoderError, EncoderMismatchError
from slice_os.types import Float32

Int64 = npt.NDArray[np.int64]
CALIBRATION = "judge.json"
_LONGEST, _BEFORE, _AFTER = 48, 16, 8
"""Tokens of a text, and of what stands before and after it; a span has at most 20 words."""
SHIFT = 2.0
"""Below this a judge's word hardly counts."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a judge's word is added to a verified degree.

    With z the graph's output, the judged degree is
    sigmoid(slope · degree + intercept - softplus(z - 2)): 0 for no likeness, 1 for the same, as
    people rate pairs of sentences. A judge only lowers what the vectors say, and without a reason
    to it changes next to nothing.

    Attributes:
        weights_hash: Of the encoder whose degrees these are; a judge has no meaning for another's.
    """

    weights_hash: str
    slope: float
    intercept: float

    def degrees(self, verified: Float32, z: Float32 | float = -np.inf) -> Float32:
        """Return judged degrees in [0, 1], float32 like `verified`, from verified ones.

        Without `z`, those of what a judge has nothing to say against.
        """
        logits = self.slope * verified + self.intercept - np.logaddexp(0, z - SHIFT)
        found: Float32 = (1 / (1 + np.exp(-logits))).astype(np.float32)
        return found

    def least(self, judged: float) -> float:
        """Return the verified degree below which no judged degree reaches `judged`."""
        within = min(max(judged, 1e-6), 1 - 1e-6)
        return (math.log(within / (1 - within)) - self.intercept) / self.slope

    @classmethod
    def load(cls, folder: Path) -> Calibration:
        """Read that of the judge in `folder`.

        Raises:
            EncoderError: It is missing or unusable.
        """
        path = folder / CALIBRATION
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            return cls(str(said["weights_hash"]), float(said["slope"]), float(said["intercept"]))
        except OSError as exc:
            raise EncoderError(
                f"{folder} holds no judge ({CALIBRATION} is missing): give the folder that "
                "slice-os export made of one."
            ) from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise EncoderError(
                f"{path} lacks or misstates a field ({exc}): export the judge again."
            ) from exc

    def save(self, folder: Path) -> None:
        """Write it into a judge's folder."""
        (folder / CALIBRATION).write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")


class ModelJudge(Judge):
    """The judge in a folder: an encoder folder, and `judge.json` beside its graph.

    Attributes:
        info: Its name, licence and training data.
        calibration: How its word is added to a degree.
    """

    def __init__(self, folder: Path, device: str = "cpu", threads: int | None = None) -> None:
        """Load the judge in `folder`; see `load_judge`."""
        self.info = EncoderInfo.load(folder)
        self.calibration = Calibration.load(folder)
        self._tokenizer = shared(TextTokenizer, folder / TOKENIZER)
        self._graph = shared(
            Graph, folder / GRAPH, device, self.info.dimension, self.info.precision == "int8"
        )
        self._pool = Pool(2 if self._graph.on_gpu else threads or usable_cores())

    def __repr__(self) -> str:
        return f"<ModelJudge {self.info.name} {self.info.precision} on {self._graph.device}>"

    def check(self, encoder: Encoder) -> None:
        """Raise EncoderMismatchError if it was trained on the degrees of another encoder."""
        if self.calibration.weights_hash != encoder.info.weights_hash:
            raise EncoderMismatchError(
                f"The judge {self.info.name} judges degrees of another encoder than "
                f"{encoder.info.name}: leave it out, or train one for it (docs/training.md)."
            )

    def close(self) -> None:
        """Stop the threads."""
        self._pool.close()

    def degrees(self, pairs: Sequence[tuple[str, Placed]], verified: Floats) -> Float32:
        """Return the judged degrees, float32 ``[n]``, of pairs with these verified ones.

        What a pair is given does not depend on its company: each is read alone, equal ones once.

        Raises:
            EncoderError: The graph gave a number that is not finite.
        """
        rows = dict.fromkeys(pairs)
        running = [
            self._pool.submit(partial(self._said, ids, types))
            for ids, types in joined(self._tokenizer, list(rows))
        ]
        said = dict(zip(rows, (one.result() for one in running), strict=True))
        z = np.array([said[pair] for pair in pairs], np.float32)
        if not np.isfinite(z).all():
            raise EncoderError(
                f"The judge {self.info.name} gave a number that is not finite: export it again."
            )
        return self.calibration.degrees(verified.astype(np.float32), z)

    def least(self, judged: float) -> float:
        """Return the verified degree below which no judged degree reaches `judged`."""
        return self.calibration.least(judged)

    def _said(self, ids: Int64, types: Int64) -> float:
        return float(self._graph.run(ids[None], np.ones_like(ids)[None], types[None])[0, 0, 0])


def joined(
    tokenizer: TextTokenizer, pairs: Sequence[tuple[str, Placed]]
) -> list[tuple[Int64, Int64]]:
    """Return token ids and types, int64 ``[T]``, of pairs of a query and a placed span.

    The shorter of the two texts comes first, so that a judge says the same both ways round. What
    stands around the span has type 1.
    """
    texts = [text for query, placed in pairs for text in (query, *placed)]
    split = [one.ids for one in tokenizer.whole(texts)]
    rows = []
    for n, (query, placed) in enumerate(pairs):
        asked, span, before, after = split[4 * n : 4 * n + 4]
        asked, span = asked[:_LONGEST], span[:_LONGEST]
        before, after = before[-_BEFORE:], after[:_AFTER]
        said = np.concatenate((before, span, after))
        outside = np.ones_like(said)
        outside[len(before) : len(before) + len(span)] = 0
        parts = [(asked, np.zeros_like(asked)), (said, outside)]
        if (len(query), query) > (len(placed.span), placed.span):
            parts.reverse()
        ids, types = [tokenizer.prefix], [np.zeros_like(tokenizer.prefix)]
        for own, kinds in parts:
            ids += [own, tokenizer.suffix]
            types += [kinds, np.zeros_like(tokenizer.suffix)]
        rows.append((np.concatenate(ids), np.concatenate(types)))
    return rows
