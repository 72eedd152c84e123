"""The encoder folder and its description, `encoder.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import msgspec

from slice_os.errors import EncoderError
from slice_os.types import Plain

FORMAT = 1
GRAPH, TOKENIZER, DESCRIPTION = "model.onnx", "tokenizer.json", "encoder.json"
DEFAULT_FOLDER = Path(__file__).parent / "default"
# With fewer, windows would hold next to nothing besides the special tokens.
_FEWEST_TOKENS = 8
_AGAIN = "export it again with slice-os export"


@dataclass(frozen=True, slots=True)
class EncoderInfo(Plain):
    """What an encoder is; of an encoder folder, what `encoder.json` says.

    Args:
        name: What people call the encoder.
        version: The version of these weights.
        weights_hash: Hash of the trained weights, equal for every precision. Vectors of the same
            weights may share an index.
        precision: "fp32", "fp16" or "int8".
        dimension: Length of every vector.
        max_tokens: The longest input, special tokens included; 0 where there is no limit.
        pad_id: The token that fills the rows of a batch.
        pooling: How token vectors become word and text vectors; only "mean" is known.
        span_range: The fewest and the most words of a span that the encoder is made for.
        languages: ISO 639 codes; empty where unknown.
        licence: SPDX identifier; empty where unknown.
        training_data: One sentence.
        measured: What was measured when it was exported, such as the parity with torch.
        graph_bytes: Size of `model.onnx`, which tells a half-written folder; 0 of other kinds.
        phrase_head: Hash of the phrase head in the folder, empty without one.
        graph_sha256: Hash of `model.onnx`, which tells a corrupt one; empty of other kinds.
        format: Version of this description.
    """

    name: str
    version: str
    weights_hash: str
    precision: str
    dimension: int
    max_tokens: int = 0
    graph_bytes: int = 0
    graph_sha256: str = ""
    phrase_head: str = ""
    pad_id: int = 0
    pooling: Literal["mean"] = "mean"
    span_range: tuple[int, int] = (1, 20)
    languages: tuple[str, ...] = ()
    licence: str = ""
    training_data: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def dump(self, folder: Path) -> None:
        """Write `encoder.json` into `folder`."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n"
        (folder / DESCRIPTION).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: str | PathLike[str], *, check: bool = False) -> EncoderInfo:
        """Read the description of the encoder in `folder`.

        Args:
            folder: The encoder folder.
            check: Also read all of `model.onnx` and compare its hash.

        Raises:
            EncoderError: A file is missing, cut short or changed, or the description is unusable.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise EncoderError(
                f"There is no encoder folder at {folder}",
                hint="check the path, or make one with slice-os export.",
            )
        for name in (DESCRIPTION, GRAPH, TOKENIZER):
            if not (folder / name).is_file():
                raise EncoderError(f"The encoder folder {folder} has no {name}: {_AGAIN}.")
        info = cls._parse(folder / DESCRIPTION)
        graph = folder / GRAPH
        if (size := graph.stat().st_size) != info.graph_bytes:
            raise EncoderError(
                f"{graph} holds {size} bytes instead of {info.graph_bytes}, so it is half-written "
                f"or not this encoder's: {_AGAIN} or copy it again."
            )
        if check and file_sha256(graph) != info.graph_sha256:
            raise EncoderError(
                f"{graph} is not the file that {DESCRIPTION} describes: {_AGAIN} or copy it again."
            )
        return info

    @classmethod
    def _parse(cls, path: Path) -> EncoderInfo:
        try:
            described = path.read_bytes()
            written = msgspec.json.decode(described, type=_Versioned).format
            if written > FORMAT:
                raise EncoderError(
                    f"{path} has format {written} and this slice-os reads up to {FORMAT}: "
                    "pip install --upgrade slice-os."
                )
            # Unknown fields are left out, so that a later slice-os may add some within a format.
            info = msgspec.json.decode(described, type=cls)
        except (OSError, ValueError) as exc:
            raise EncoderError(f"{path} describes no slice-os encoder ({exc}): {_AGAIN}.") from exc
        low, high = info.span_range
        if not 1 <= low <= high or info.dimension < 1 or info.max_tokens < _FEWEST_TOKENS:
            raise EncoderError(
                f"{path} states a dimension, max_tokens or span_range that cannot be: {_AGAIN}."
            )
        return info


class _Versioned(msgspec.Struct):
    """The description of any format."""

    format: int


def file_sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
