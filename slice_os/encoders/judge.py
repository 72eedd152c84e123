"""Judges: they compare a query and a span word by word, for what vectors cannot tell apart.

A span's verified degree compares two vectors that were made apart, so "wants to cancel" and "does
not want to cancel" are nearly one. The judge inside is a model: an encoder's graph that reads the
query and the span together. The first components of its first token say whether one is the opposite
of the other, and how.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from slice_os.encoders.batching import Pool
from slice_os.encoders.info import GRAPH, TOKENIZER, EncoderInfo
from slice_os.encoders.judge_text import marked
from slice_os.encoders.onnx import Graph, shared, usable_cores
from slice_os.encoders.opposition import opposition
from slice_os.encoders.tokens import TextTokenizer
from slice_os.errors import EncoderError
from slice_os.types import Float32

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]
Self = TypeVar("Self", bound="Judge")  # in typing since Python 3.11
ENGLISH, NO_JUDGE = "english", "none"
"""Names that `load_judge` takes for the judge inside, and for none."""
CALIBRATION = "judge.json"
_LONGEST, _BEFORE, _AFTER = 48, 16, 8
"""Tokens of a text, and of what stands before and after it; a span has at most 20 words."""
KINDS = ("same", "negation", "antonym", "number", "modal", "role", "other", "unrelated")
"""What a judge tells apart: the first components of its first token, times `SCALE`."""
OPPOSED = KINDS[1:-1]
SCALE = 8.0
_HINTS = {
    "negation": "no",
    "antonym": "opposite",
    "number": "number",
    "modal": "must",
    "role": "turn",
}
"""By which word a judge is told what rules have against a pair, if anything."""
MOST_KNOWN = 1000
"""Pairs whose reading is kept, so that a reason is not read for twice."""


class Placed(NamedTuple):
    """A span, and the words of its sentence just before and after it."""

    span: str
    before: str = ""
    after: str = ""


class Judge(ABC):
    """What has the last word on verified degrees; a context manager that closes it."""

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027
        """Stop what it has running."""

    @abstractmethod
    def degrees(self, pairs: Sequence[tuple[str, Placed]], verified: Floats) -> Floats:
        """Return the judged degrees ``[n]`` of pairs with these verified ones.

        What a pair is given does not depend on its company.
        """

    def reasons(self, pairs: Sequence[tuple[str, Placed]]) -> list[tuple[str, ...]]:
        """Return what it has against each pair, such as "negation"; nothing if it cannot say."""
        return [()] * len(pairs)

    @abstractmethod
    def least(self, judged: float) -> float:
        """Return the verified degree below which no judged degree reaches `judged`."""


JudgeLike = Judge | str | os.PathLike[str] | None
"""A judge, "english" for the one inside, where another is, or None or "none" for none."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a judge's word changes a verified degree.

    With d the degree and p how likely the two are opposed, the judged degree is
    d - share(p) · max(d - level, 0), where share grows evenly from 0 at `doubt` to 1 at `sure`.
    What surely says the opposite has `level` at most; what the judge has nothing against stays as
    it is. The odds of p are those that the model gives, times exp(seen · strength) where rules by
    words see an opposition of that strength, and exp(-unseen) where they see none.

    Attributes:
        level: The highest degree of a sure opposite.
        doubt: The probability from which on an opposite is lowered.
        sure: The one from which on it is lowered wholly.
        seen: By how much rules that see an opposition are believed.
        unseen: By how much rules that see none are.
    """

    level: float = 0.6
    doubt: float = 0.4
    sure: float = 0.7
    seen: float = 4.0
    unseen: float = 6.0

    def degrees(self, verified: Floats, odds: Floats, strength: Floats) -> Float32:
        """Return judged degrees from verified ones, the model's log odds, and rules' strength."""
        believed = odds + np.where(strength > 0, self.seen * strength, -self.unseen)
        p = 1 / (1 + np.exp(-believed))
        share = np.clip((p - self.doubt) / (self.sure - self.doubt), 0, 1)
        judged: Float32 = verified - share * np.maximum(verified - self.level, 0)
        return judged.astype(np.float32)

    @classmethod
    def load(cls, folder: Path) -> Calibration:
        """Read that of the judge in `folder`.

        Raises:
            EncoderError: It is missing or unusable.
        """
        path = folder / CALIBRATION
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            return cls(**{field: float(fields[field]) for field in cls.__slots__})
        except OSError as exc:
            raise EncoderError(
                f"{folder} holds no judge ({CALIBRATION} is missing)",
                hint="give the folder that slice-os export made of one.",
            ) from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise EncoderError(
                f"{path} lacks or misstates a field ({exc}): export the judge again."
            ) from exc

    def save(self, folder: Path) -> None:
        """Write it into a judge's folder."""
        (folder / CALIBRATION).write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")


def log_odds(logits: Float32) -> Float32:
    """Return the log odds that texts are opposed, float32 ``[n]``, from the logits of `KINDS`."""
    against = np.logaddexp.reduce(logits[:, 1:-1], axis=1)
    odds: Float32 = against - np.logaddexp(logits[:, 0], logits[:, -1])
    return odds


def opposed(logits: Float32) -> Float32:
    """Return how likely the model holds it that texts are opposed, float32 ``[n]``."""
    return (1 / (1 + np.exp(-log_odds(logits)))).astype(np.float32)


def _strength(query: str, placed: Placed) -> float:
    """Return how strong an opposition rules see, the shorter text first: it may be a topic."""
    shorter, longer = sorted((query, placed.span), key=lambda text: (len(text), text))
    return opposition(shorter, longer, placed.before).strength


class ModelJudge(Judge):
    """The judge in a folder: an encoder folder, and `judge.json` beside its graph.

    It judges whichever encoder's degrees.

    Attributes:
        info: Its name, licence and training data.
        calibration: How its word changes a degree.
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
        self._known: dict[tuple[str, Placed], Float32] = {}

    def __repr__(self) -> str:
        return f"<ModelJudge {self.info.name} {self.info.precision} on {self._graph.device}>"

    def close(self) -> None:
        """Stop the threads."""
        self._pool.close()

    def degrees(self, pairs: Sequence[tuple[str, Placed]], verified: Floats) -> Float32:
        """Return the judged degrees, float32 ``[n]``, of pairs with these verified ones.

        What a pair is given does not depend on its company: each is read alone, equal ones once,
        and none whose degree is too low to be lowered.

        Raises:
            EncoderError: The graph gave a number that is not finite.
        """
        judged: Float32 = np.array(verified, np.float32)
        high = np.flatnonzero(judged > self.calibration.level)
        doubtful = [pairs[n] for n in high.tolist()]
        strength = np.array([_strength(*pair) for pair in doubtful], np.float32)
        odds = log_odds(self.logits(doubtful))
        judged[high] = self.calibration.degrees(judged[high], odds, strength)
        return judged

    def reasons(self, pairs: Sequence[tuple[str, Placed]]) -> list[tuple[str, ...]]:
        """Return the likeliest kind of opposition of each pair."""
        best = self.logits(pairs)[:, 1:-1].argmax(axis=1)
        return [(OPPOSED[n],) for n in best.tolist()]

    def least(self, judged: float) -> float:
        """Return the degree as it is."""
        return judged

    def logits(self, pairs: Sequence[tuple[str, Placed]]) -> Float32:
        """Return the logits of `KINDS`, float32 ``[n, 8]``.

        Raises:
            EncoderError: The graph gave a number that is not finite.
        """
        known = self._known
        rows = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        running = [
            self._pool.submit(partial(self._states, ids, types))
            for ids, types in joined(self._tokenizer, rows)
        ]
        fresh = dict(zip(rows, (run.result() for run in running), strict=True))
        logits = np.array(
            [fresh[pair] if pair in fresh else known[pair] for pair in pairs], np.float32
        )
        if not np.isfinite(logits).all():
            raise EncoderError(
                f"The judge {self.info.name} gave a number that is not finite: export it again."
            )
        self._known = fresh if len(known) > MOST_KNOWN else {**known, **fresh}
        return logits.reshape(-1, len(KINDS))

    def _states(self, ids: Int64, types: Int64) -> Float32:
        states = self._graph.run(ids[None], np.ones_like(ids)[None], types[None])
        return SCALE * states[0, 0, : len(KINDS)]


def joined(
    tokenizer: TextTokenizer,
    pairs: Sequence[tuple[str, Placed]],
    hinted: Sequence[bool] | None = None,
) -> list[tuple[Int64, Int64]]:
    """Return token ids and types, int64 ``[T]``, of pairs of a query and a placed span.

    The shorter of the two texts comes first, so that a judge says the same both ways round. What
    stands around the span has type 1, and so have, before all, the hints: what rules by words
    have against the pair, if anything, which the judge may believe or not; where `hinted` is false
    none.
    """
    texts = [text for query, placed in pairs for text in marked(query, *placed)]
    split = [tokenized.ids for tokenized in tokenizer.whole([*texts, *_HINTS.values()])]
    words = dict(zip(_HINTS, split[len(texts) :], strict=True))
    rows = []
    for n, (query, placed) in enumerate(pairs):
        query_ids, span_ids, before_ids, after_ids = split[4 * n : 4 * n + 4]
        query_ids, span_ids = query_ids[:_LONGEST], span_ids[:_LONGEST]
        before_ids, after_ids = before_ids[-_BEFORE:], after_ids[:_AFTER]
        placed_ids = np.concatenate((before_ids, span_ids, after_ids))
        outside = np.ones_like(placed_ids)
        outside[len(before_ids) : len(before_ids) + len(span_ids)] = 0
        parts = [(query_ids, np.zeros_like(query_ids)), (placed_ids, outside)]
        texts_as_read = query, placed.span
        if (len(query_ids), query_ids.tolist()) > (len(span_ids), span_ids.tolist()):
            parts.reverse()
            texts_as_read = placed.span, query
        ids, types = [tokenizer.prefix], [np.zeros_like(tokenizer.prefix)]
        if hinted is None or hinted[n]:
            for kind in opposition(*texts_as_read, placed.before).kinds:
                ids.append(words[kind])
                types.append(np.ones_like(words[kind]))
        for part, kinds in parts:
            ids += [part, tokenizer.suffix]
            types += [kinds, np.zeros_like(tokenizer.suffix)]
        rows.append((np.concatenate(ids), np.concatenate(types)))
    return rows


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
