"""Reading a Hugging Face checkpoint folder."""

from __future__ import annotations

import hashlib
import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slice_os.errors import ExportError, needs
from slice_os.types import Float32

# Families whose position numbers begin after the padding token's.
_OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl")
# Model cards write SPDX identifiers in small letters.
_SPDX = {"apache-2.0": "Apache-2.0", "mit": "MIT"}
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


@dataclass(frozen=True, slots=True)
class Card:
    """What a model card's YAML front matter tells; empty where it does not."""

    languages: tuple[str, ...] = ()
    licence: str = ""
    training_data: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A loaded checkpoint: `model` (torch, fp32, in evaluation mode) and its fast `tokenizer`.

    `max_tokens` is what the checkpoint was trained to read and `places` the
    most that it can, both with special tokens; `card` is the README's. `projection` ``[h, d]`` is
    what each token's vector is multiplied with, as late-interaction models (ColBERT) do; None of
    others.
    """

    model: Any
    tokenizer: Any
    weights_hash: str
    max_tokens: int
    places: int
    card: Card
    projection: Float32 | None = None

    @property
    def dimension(self) -> int:
        """That of the vectors of its tokens."""
        if self.projection is not None:
            return int(self.projection.shape[1])
        return int(self.model.config.hidden_size)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the warnings of torch, transformers, optimum and onnxruntime."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Not the loggers' levels: these libraries set their own when they are imported.
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


def load_checkpoint(folder: str | Path) -> Checkpoint:
    """Load the checkpoint in `folder`, a transformers or sentence-transformers folder.

    Raises:
        ExportError: A part is missing or unreadable, or the tokenizer has no fast form.
        MissingExtraError: torch or transformers is not installed.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ExportError(f"There is no checkpoint folder at {folder}: check the path.")
    # sentence-transformers keeps the transformer in a folder that modules.json names.
    modules = _json(folder / "modules.json")
    inner = folder / modules[0]["path"] if modules else folder
    if not (inner / "config.json").is_file():
        raise ExportError(f"{inner} has no config.json: give a Hugging Face checkpoint folder.")
    if not any(path for pattern in _WEIGHTS for path in inner.glob(pattern)):
        raise ExportError(
            f"{inner} has no weights (model.safetensors or pytorch_model.bin): give a folder with "
            "the trained model."
        )
    with needs("Exporting an encoder", "export"):
        import torch
        from transformers import AutoModel, AutoTokenizer
    with quiet():
        tokenizer = _load(AutoTokenizer.from_pretrained, inner, "tokenizer")
        if not tokenizer.is_fast:
            raise ExportError(
                f"The tokenizer of {inner} has no fast form (tokenizer.json), which slice-os "
                "needs: save one with transformers' AutoTokenizer and use_fast=True."
            )
        model, notes = _load(
            AutoModel.from_pretrained,
            inner,
            "model",
            output_loading_info=True,
            dtype=torch.float32,
            attn_implementation="eager",
        )
    if hasattr(model.config, "reference_compile"):
        model.config.reference_compile = False  # ModernBERT would compile itself on a GPU
    # The pooler is never used, and many checkpoints come without one.
    absent = sorted(key for key in notes["missing_keys"] if "pooler" not in key)
    if absent:
        raise ExportError(
            f"The weights of {inner} lack {absent[0]} and {len(absent) - 1} more: give the folder "
            "that holds the whole trained model."
        )
    places = _positions(model)
    stated = _json(inner / "sentence_bert_config.json") or {}
    trained = stated.get("max_seq_length") or tokenizer.model_max_length
    projection = _projection(folder, modules or [])
    return Checkpoint(
        model=model.eval(),
        tokenizer=tokenizer,
        weights_hash=projected_hash(weights_hash(model), projection),
        max_tokens=int(min(trained, places)),
        places=places,
        card=_card(folder / "README.md"),
        projection=projection,
    )


def _projection(folder: Path, modules: Sequence[Mapping[str, Any]]) -> Float32 | None:
    """Return what token vectors are multiplied with: all Dense layers that no pooling precedes.

    Raises:
        ExportError: One is not linear, so that sums of vectors would not stay sums.
    """
    import torch
    from safetensors.torch import load_file

    product: Float32 | None = None
    for module in modules[1:]:
        kind = str(module["type"]).rpartition(".")[2]
        if kind == "Pooling":
            break
        if kind != "Dense":
            continue
        place = folder / module["path"]
        settings = _json(place / "config.json") or {}
        activation = str(settings.get("activation_function") or "Identity").rpartition(".")[2]
        if (place / "model.safetensors").is_file():
            weights = load_file(place / "model.safetensors")
        else:
            weights = torch.load(place / "pytorch_model.bin", "cpu", weights_only=True)
        layer: dict[str, Float32] = {
            name.rpartition(".")[2]: tensor.float().numpy() for name, tensor in weights.items()
        }
        if activation != "Identity" or np.any(layer.get("bias", 0)) or settings.get("use_residual"):
            raise ExportError(
                f"The projection {place} is not linear (a bias, a residual or {activation}), so a "
                "span's vector would not be the sum of its words': give a checkpoint without one."
            )
        matrix = layer["weight"].T
        product = matrix if product is None else np.matmul(product, matrix)
    return product


def replace_folder(new: Path, place: Path, old: Path) -> None:
    """Put `new` at `place`; what was there goes to `old`, and comes back if that fails."""
    try:
        if place.exists():
            place.rename(old)
        new.rename(place)
    finally:
        if old.exists() and not place.exists():
            old.rename(place)


def weights_hash(model: Any) -> str:
    """Return the hash of a model's weights: names, shapes and float32 values, without a pooler."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        if "pooler" not in name:
            array = tensor.detach().cpu().float().contiguous().numpy()
            digest.update(f"{name} {array.shape}".encode())
            digest.update(array.astype("<f4", copy=False).tobytes())
    return digest.hexdigest()


def projected_hash(weights_hash: str, matrix: Float32 | None) -> str:
    """Return the weights hash of an encoder whose vectors are multiplied with a matrix, if any."""
    if matrix is None:
        return weights_hash
    digest = hashlib.blake2b(weights_hash.encode(), digest_size=16)
    digest.update(matrix.astype("<f4").tobytes())
    return digest.hexdigest()


def _load(call: Any, folder: Path, what: str, **settings: Any) -> Any:
    try:
        return call(str(folder), local_files_only=True, **settings)
    except Exception as exc:  # transformers raises many kinds
        line = (str(exc).strip() or type(exc).__name__).splitlines()[0]
        raise ExportError(
            f"transformers cannot load the {what} of {folder} ({line}): check that its files are "
            "complete."
        ) from exc


def _json(path: Path) -> Any:
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as exc:
        raise ExportError(f"{path} is not JSON ({exc}): copy the checkpoint again.") from exc


def _positions(model: Any) -> int:
    """Return how many tokens the model has places for, special tokens included."""
    positions = int(getattr(model.config, "max_position_embeddings", None) or 512)
    if model.config.model_type in _OFFSET_POSITIONS:
        positions -= (model.config.pad_token_id or 0) + 1
    return positions


def _listed(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value or ()))


def _card(path: Path) -> Card:
    import yaml

    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    try:
        has_front = text.startswith("---\n") and text.count("---\n") > 1
        front = yaml.safe_load(text.split("---\n", 2)[1]) if has_front else None
    except yaml.YAMLError:
        front = None
    if not isinstance(front, dict):
        return Card()
    licence = str(front.get("license") or "")
    return Card(
        languages=_listed(front.get("language")),
        licence=_SPDX.get(licence, licence),
        training_data=", ".join(_listed(front.get("datasets"))),
    )
