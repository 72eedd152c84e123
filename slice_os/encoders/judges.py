"""The judge that comes inside, which goes by rules of English, and the loading of any."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, overload

import numpy as np

from slice_os.encoders.encoder import Encoder
from slice_os.encoders.judge import Floats, Judge, Placed
from slice_os.encoders.model_judge import ModelJudge
from slice_os.encoders.opposition import Opposition, opposition
from slice_os.errors import EncoderError

WORDS, NO_JUDGE = "words", "none"
"""Names that `load_judge` takes for the judge inside, and for none."""
OPPOSITE, ANOTHER_NUMBER = 0.65, 0.67
"""The highest degrees of an opposite and of what says another number. People rate both as half as
alike as the same, which is a degree of 0.8; but a paraphrase in other words has one of 0.79 on
average, and nine of ten of those are to come before an opposite."""


def _oppositions(pairs: Sequence[tuple[str, Placed]]) -> list[Opposition]:
    return [opposition(query, placed.span, placed.before) for query, placed in pairs]


class WordJudge(Judge):
    """The judge that comes inside: it lowers the degree of an opposite, seen by its words.

    It judges whichever encoder's degrees, and leaves those of other pairs as they are.
    """

    def degrees(self, pairs: Sequence[tuple[str, Placed]], verified: Floats) -> Floats:
        """Return the judged degrees ``[n]`` of pairs with these verified ones.

        An opposite gets at most 0.65, and 0.67 if it is another number: the fewer of the other
        words are the same, the less of what it has above that is taken off.
        """
        found = _oppositions(pairs)
        strength = np.array([one.strength for one in found])
        level = [ANOTHER_NUMBER if "number" in one.kinds else OPPOSITE for one in found]
        lowered: Floats = verified - strength * np.maximum(verified - np.array(level), 0)
        return lowered

    def reasons(self, pairs: Sequence[tuple[str, Placed]]) -> list[tuple[str, ...]]:
        """Return the kinds of opposition of each pair (`slice_os.encoders.opposition`)."""
        return [one.kinds for one in _oppositions(pairs)]

    def least(self, judged: float) -> float:
        """Return the degree as it is."""
        return judged


JudgeLike = Judge | str | os.PathLike[str] | None
"""A judge, "words" for the one inside, where another is, or None or "none" for none."""


@overload
def load_judge(  # type: ignore[overload-overlap]
    judge: Literal["none"] | None, device: str = "auto", threads: int | None = None
) -> None: ...
@overload
def load_judge(
    judge: Judge | str | os.PathLike[str] = WORDS, device: str = "auto", threads: int | None = None
) -> Judge: ...
def load_judge(
    judge: JudgeLike = WORDS, device: str = "auto", threads: int | None = None
) -> Judge | None:
    """Load a judge; one that is given is returned, and stays its owner's to close.

    Args:
        judge: "words" for the one that comes inside, a folder that `slice-os export` made of
            another ("./words" if it is called that), or None or "none" for none.
        device: As `slice_os.load_encoder` takes it.
        threads: How many cores it uses on a CPU; all that the process may if None.

    Raises:
        EncoderError: There is no judge, or it is not usable.
        MissingExtraError: onnxruntime is not installed.
    """
    if judge in (None, NO_JUDGE):
        return None
    if judge == WORDS:
        return WordJudge()
    if not isinstance(judge, (str, os.PathLike)):
        return judge
    if not Path(judge).is_dir():
        raise EncoderError(
            f"There is no judge {os.fspath(judge)}: give {WORDS}, {NO_JUDGE}, or the folder that "
            "slice-os export made of one."
        )
    return ModelJudge(Path(judge), device, threads)


@contextmanager
def open_judge(
    judge: JudgeLike, encoder: Encoder, device: str = "auto", threads: int | None = None
) -> Iterator[Judge | None]:
    """Give a judge of an encoder's degrees as `load_judge` does, and close it afterwards.

    One that was given stays open.

    Raises:
        EncoderMismatchError: It judges another encoder's degrees.
    """
    loaded = load_judge(judge, device, threads)
    try:
        if loaded:
            loaded.check(encoder)
        yield loaded
    finally:
        if loaded and loaded is not judge:
            loaded.close()
