"""A run: its progress and result, and its folder of description, log, state and checkpoints.

Files are written under another name and renamed, so none is ever half written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from slice_os.errors import SliceOSError, TrainingError
from slice_os.exporters.checkpoint import replace_folder
from slice_os.files import whole, write_whole

STATE, LOG, ABOUT, BEST, LAST = "state.pt", "log.jsonl", "run.json", "best", "last"
EXTRACTED = "extracted.pt"
_OWN = {f".{name}.{end}" for name in (BEST, LAST) for end in ("partial", "old")}
_OWN |= {f".partial-{name}" for name in (STATE, ABOUT, EXTRACTED)}
_PACKAGES = ("slice-os", "torch", "transformers", "accelerate", "tokenizers", "numpy")


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """Progress of a run: the `losses` of the last step, and its `rate` in words a second.

    `measures` are those of the best weights so far, empty before they are first measured. `unit` is
    what `step` and `steps` count: a static encoder's teacher encodes texts first.
    """

    step: int
    steps: int
    losses: Mapping[str, float]
    rate: float
    measures: Mapping[str, float]
    unit: str = "step"


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """The result of a run: `checkpoint` is the folder to export, `measures` are of its weights."""

    checkpoint: Path
    step: int
    steps: int
    measures: Mapping[str, float]


class RunFolder:
    """The folder of a training run.

    Attributes:
        folder: Where it is.
    """

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        """Make `folder`, or open the run in it to resume it.

        It resumes only with the same recipe, data and models, as `about` says; without a saved
        state it starts again.
        """
        self.folder = folder
        known = folder / ABOUT
        about = json.loads(json.dumps(about))  # as it will be read
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if known.is_file():
                before = json.loads(known.read_text(encoding="utf-8")).get("made_of")
                if before == about:
                    return
                if (folder / STATE).exists() or (folder / BEST).exists():
                    raise TrainingError(
                        f"{folder} holds a run of another recipe or other data ("
                        f"{_difference(before, about)})",
                        hint="give another folder with --output, or remove it.",
                    )
            if {path.name for path in folder.iterdir()} - _OWN - {ABOUT, LOG}:
                raise TrainingError(f"{folder} is not empty and holds no run: give another folder.")
            (folder / LOG).unlink(missing_ok=True)
            description = {"made_of": about, "with": _versions()}
            write_whole(known, json.dumps(description, indent=2))
        except OSError as exc:
            raise TrainingError(f"{folder} cannot be written ({exc.strerror}).") from exc
        except ValueError as exc:
            raise TrainingError(f"{known} is not JSON ({exc}): remove {folder}.") from exc

    def load(self, name: str = STATE) -> dict[str, Any] | None:
        """Return the saved state, or what else was saved as `name`, if there is one."""
        import torch

        path = self.folder / name
        if not path.is_file():
            return None
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as exc:  # torch raises many kinds
            raise TrainingError(
                f"{path} cannot be read ({exc}): remove it to begin the run again."
            ) from exc
        return state

    def save(self, state: dict[str, Any], name: str = STATE) -> None:
        """Save `state` in place of the one before."""
        import torch

        try:
            with whole(self.folder / name) as partial:
                torch.save(state, partial)
        except (OSError, RuntimeError) as exc:  # torch's writer raises RuntimeError on a full disk
            raise TrainingError(
                f"The state of the run cannot be written to {self.folder} ({exc}): make room; the "
                "run goes on from the state before it."
            ) from exc

    def keep(self, name: str, write: Callable[[Path], object]) -> Path:
        """Let `write` make a folder `name`, whole, in place of the one before."""
        partial, old = self.folder / f".{name}.partial", self.folder / f".{name}.old"
        place = self.folder / name
        try:
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
            write(partial)
            replace_folder(partial, place, old)
            shutil.rmtree(old, ignore_errors=True)
        except SliceOSError:
            raise
        except Exception as exc:  # safetensors raises its own kinds on a full disk
            raise TrainingError(
                f"The checkpoint cannot be written to {self.folder} ({exc}): make room, and run "
                "the same command again."
            ) from exc
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return place

    def log(self, line: dict[str, Any]) -> None:
        """Add a line to the log; a resumed run repeats the steps since its last saved state."""
        with contextlib.suppress(OSError), (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def data_hash(path: Path) -> str:
    """Return the BLAKE2 hash of a file, or of all files of a folder with their names."""
    digest = hashlib.blake2b(digest_size=16)
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        try:
            with file.open("rb") as stream:
                digest.update(file.relative_to(path).as_posix().encode())
                while block := stream.read(1 << 20):
                    digest.update(block)
        except OSError as exc:
            raise TrainingError(f"{file} cannot be read ({exc.strerror}): check the path.") from exc
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def _difference(before: Any, after: dict[str, Any]) -> str:
    if not isinstance(before, dict):
        return "it has no description"
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    inner = [
        f"{key}.{name}"
        for key in keys
        if isinstance(before.get(key), dict) and isinstance(after.get(key), dict)
        for name in {**before[key], **after[key]}
        if before[key].get(name) != after[key].get(name)
    ]
    return f"{', '.join(inner or keys)} differ"
