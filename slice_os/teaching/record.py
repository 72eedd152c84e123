"""A taught phrase: what one file of JSON holds, read and written whole."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from slice_os.encoders.info import EncoderInfo
from slice_os.errors import EncoderMismatchError, TeachingError
from slice_os.files import write_whole
from slice_os.spans import degree
from slice_os.types import Float32, Plain

FORMAT = 1
SUFFIX = ".json"
HALF = 0.5
"""The probability from which on a span is taken for a match, unless another is asked for."""


@dataclass(frozen=True, slots=True)
class Label(Plain):
    """What somebody said of characters `start` to `end` (half-open) of a document.

    `text` are these characters, by which they are found again where the document has changed;
    `marked` tells whether exactly these words were marked, or were only shown.
    """

    document: str
    start: int
    end: int
    right: bool
    text: str = ""
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Estimate(Plain):
    """What a taught phrase is worth, as its labels tell; intervals are of 95 % (`teacher`).

    Attributes:
        labels: How many labels there are.
        right: How many of them say yes.
        probability: From which probability on a span is taken for a match.
        precision: The share of matches that are right.
        recall: The share of what is right in the index that is a match.
        fallback: Whether the phrase's own vector ranks, because the labels show no better one.
    """

    labels: int
    right: int
    probability: float
    precision: float
    precision_interval: tuple[float, float]
    recall: float
    recall_interval: tuple[float, float]
    fallback: bool


@dataclass(frozen=True, slots=True, eq=False)
class Prototype:
    """A query vector: spans of `shortest` to `longest` words are compared with it.

    Attributes:
        vector: Of length 1, float32 ``[d]``.
        slope: The logit of a span's probability is ``slope * cosine + shift``.
        shift: See `slope`.
        shortest: Fewest words.
        longest: Most words.
    """

    vector: Float32
    slope: float
    shift: float
    shortest: int
    longest: int

    @property
    def lengths(self) -> range:
        """The span lengths that it is compared with."""
        return range(self.shortest, self.longest + 1)

    def probabilities(self, cosines: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the probabilities of cosines, of any shape; -inf gives 0."""
        logits = np.where(np.isneginf(cosines), -np.inf, self.slope * cosines + self.shift)
        probabilities: npt.NDArray[Any] = 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
        return np.where(np.isneginf(logits), 0, probabilities)

    def cosine(self, probability: float) -> float:
        """Return the least cosine of a probability; above 1, below -1 where there is none."""
        if not 0 < probability < 1:
            return math.inf if probability >= 1 else -math.inf
        return (math.log(probability / (1 - probability)) - self.shift) / self.slope


@dataclass(frozen=True, slots=True, eq=False)
class TaughtPhrase:
    """A phrase that was taught: vectors of which the best counts, and what they were taught with.

    Attributes:
        name: What its matches are called.
        phrases: The phrases that it began with.
        prototypes: Its vectors.
        encoder: The name of the encoder of the vectors.
        weights_hash: The hash of that encoder's weights (`EncoderInfo.weights_hash`).
        labels: What was said.
        estimate: What it is worth; None where too little was said.
        date: When it was last taught, ISO 8601.
    """

    name: str
    phrases: tuple[str, ...]
    prototypes: tuple[Prototype, ...]
    encoder: str
    weights_hash: str
    labels: tuple[Label, ...] = ()
    estimate: Estimate | None = None
    date: str = ""
    file: str = field(default="", compare=False)

    @property
    def dimension(self) -> int:
        """The dimension of its vectors."""
        return len(self.prototypes[0].vector)

    def check(self, info: EncoderInfo) -> None:
        """Raise EncoderMismatchError unless the vectors are of an encoder."""
        if self.weights_hash != info.weights_hash or self.dimension != info.dimension:
            raise EncoderMismatchError(
                f"The phrase {self.name!r} was taught with the encoder {self.encoder} (weights "
                f"{self.weights_hash[:12]}), not with {info.name} (weights "
                f"{info.weights_hash[:12]})",
                hint="teach it anew from its labels with 'slice-os teach --from "
                f"{self.file or 'FILE'}'.",
            )

    def degree(self, probability: float) -> float:
        """Return the degree of similarity that a probability is of the first vector."""
        return degree(self.prototypes[0].cosine(probability))

    def to_dict(self) -> dict[str, Any]:
        """Return what its file holds, as plain JSON types."""
        return {
            "slice_os": "taught phrase",
            "format": FORMAT,
            "name": self.name,
            "phrases": list(self.phrases),
            "encoder": {
                "name": self.encoder,
                "weights_hash": self.weights_hash,
                "dimension": self.dimension,
            },
            "date": self.date,
            "estimate": self.estimate and self.estimate.to_dict(),
            "prototypes": [
                {**asdict(prototype), "vector": [round(x, 7) for x in prototype.vector.tolist()]}
                for prototype in self.prototypes
            ],
            "labels": [label.to_dict() for label in self.labels],
        }

    def write(self, path: str | Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            TeachingError: It cannot be written.
        """
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1)
        try:
            write_whole(Path(path), text + "\n")
        except OSError as exc:
            raise TeachingError(
                f"{path} cannot be written ({exc.strerror or exc}): give another output, or make "
                "room."
            ) from exc


def read_taught(path: str | Path) -> TaughtPhrase:
    """Read the file of a taught phrase.

    Raises:
        TeachingError: It cannot be read, is no such file, is cut short, or holds what is no number.
    """
    try:
        made = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as exc:
        raise TeachingError(f"{path} cannot be read ({exc.strerror}): check the path.") from exc
    except (ValueError, RecursionError) as exc:
        raise TeachingError(
            f"{path} is no whole JSON ({exc}): it was cut short or edited; take a copy of it, or "
            "teach anew."
        ) from exc
    if not isinstance(made, dict) or made.get("slice_os") != "taught phrase":
        raise TeachingError(
            f"{path} is no taught phrase: give a file that 'slice-os teach --output' has written."
        )
    if made.get("format") != FORMAT:
        raise TeachingError(
            f"{path} has the format {made.get('format')!r}, and this slice-os reads {FORMAT}: use "
            "the slice-os that wrote it, or teach anew from its labels."
        )
    try:
        return replace(_read(made), file=str(path))
    except (KeyError, TypeError, ValueError, OverflowError, msgspec.ValidationError) as exc:
        raise TeachingError(
            f"{path} holds a taught phrase that is damaged ({exc}): its labels are still in it; "
            f"teach anew with 'slice-os teach --from {path}'."
        ) from exc


def read_labels_of(path: str | Path) -> tuple[tuple[str, ...], tuple[Label, ...], str]:
    """Return the phrases, the labels and the name in the file of a taught phrase, and no more.

    So labels of a file whose vectors are damaged are not lost.

    Raises:
        TeachingError: It cannot be read, or holds no label.
    """
    try:
        made = json.loads(Path(path).read_text(encoding="utf-8"))
        labels = msgspec.convert(made["labels"], tuple[Label, ...])
        phrases = tuple(map(str, made["phrases"]))
        name = str(made["name"])
    except OSError as exc:
        raise TeachingError(f"{path} cannot be read ({exc.strerror}): check the path.") from exc
    except (ValueError, KeyError, TypeError, RecursionError, msgspec.ValidationError) as exc:
        raise TeachingError(
            f"{path} holds no labels that can be read ({exc}): give a file that 'slice-os teach "
            "--output' has written."
        ) from exc
    if not labels:
        raise TeachingError(f"{path} holds no label: there is nothing to teach anew from.")
    return phrases, labels, name


def _read(made: Mapping[str, Any]) -> TaughtPhrase:
    encoder = made["encoder"]
    prototypes = tuple(_prototype(row, int(encoder["dimension"])) for row in made["prototypes"])
    if not prototypes:
        raise ValueError("it holds no vector")
    phrases = tuple(map(str, made["phrases"]))
    if not phrases or not all(phrases):
        raise ValueError("it holds no phrase")
    return TaughtPhrase(
        str(made["name"]),
        phrases,
        prototypes,
        str(encoder["name"]),
        str(encoder["weights_hash"]),
        msgspec.convert(made["labels"], tuple[Label, ...]),
        msgspec.convert(made["estimate"], Estimate | None),
        str(made.get("date", "")),
    )


def _prototype(row: Mapping[str, Any], dimension: int) -> Prototype:
    vector = np.array(row["vector"], np.float32)
    slope, shift = float(row["slope"]), float(row["shift"])
    if vector.shape != (dimension,):
        raise ValueError(f"a vector has {vector.size} numbers, not {dimension}")
    if not (np.isfinite(vector).all() and math.isfinite(slope) and math.isfinite(shift)):
        raise ValueError("a number of a vector is none")
    if abs(float(np.linalg.norm(vector)) - 1) > 1e-3 or slope <= 0:
        raise ValueError("a vector has not the length 1, or its slope is not above 0")
    shortest, longest = int(row["shortest"]), int(row["longest"])
    if not 1 <= shortest <= longest:
        raise ValueError(f"no span has {shortest} to {longest} words")
    return Prototype(vector, slope, shift, shortest, longest)
