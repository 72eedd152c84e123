"""The judge that comes inside, and the loading of any."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Literal, overload

from slice_os.encoders.judge import Judge
from slice_os.encoders.model_judge import ModelJudge
from slice_os.errors import EncoderError

ENGLISH, NO_JUDGE = "english", "none"
"""Names that `load_judge` takes for the judge inside, and for none."""
JudgeLike = Judge | str | os.PathLike[str] | None
"""A judge, "english" for the one inside, where another is, or None or "none" for none."""


@overload
def load_judge(  # type: ignore[overload-overlap]
    judge: Literal["none"] | None, device: str = "auto", threads: int | None = None
) -> None: ...
@overload
def load_judge(
    judge: Judge | str | os.PathLike[str] = ENGLISH,
    device: str = "auto",
    threads: int | None = None,
) -> Judge: ...
def load_judge(
    judge: JudgeLike = ENGLISH, device: str = "auto", threads: int | None = None
) -> Judge | None:
    """Load a judge; one that is given is returned, and stays its owner's to close.

    Args:
        judge: "english" for the one that comes inside, a folder that `slice-os export` made of
            another ("./english" if it is called that), or None or "none" for none.
        device: As `slice_os.load_encoder` takes it.
        threads: How many cores it uses on a CPU; all that the process may if None.

    Raises:
        EncoderError: There is no judge, or it is not usable.
        MissingExtraError: onnxruntime is not installed.
    """
    if judge in (None, NO_JUDGE):
        return None
    if judge == ENGLISH:
        judge = Path(str(files("slice_os.encoders") / "judge_english"))
    if not isinstance(judge, (str, os.PathLike)):
        return judge
    if not Path(judge).is_dir():
        raise EncoderError(
            f"There is no judge {os.fspath(judge)}",
            hint=f"give {ENGLISH}, {NO_JUDGE}, or the folder that slice-os export made of one.",
        )
    return ModelJudge(Path(judge), device, threads)


@contextmanager
def open_judge(
    judge: JudgeLike, device: str = "auto", threads: int | None = None
) -> Iterator[Judge | None]:
    """Give a judge as `load_judge` does, and close it afterwards; one that was given stays open."""
    loaded = load_judge(judge, device, threads)
    try:
        yield loaded
    finally:
        if loaded and loaded is not judge:
            loaded.close()
