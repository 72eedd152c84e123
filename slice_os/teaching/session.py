"""Teaching a phrase with an index: what a terminal's loop, a script and a page call.

session = index.teach("the customer wants to cancel", output="cancel.json")
while questions := session.ask(5):
    for question in questions:
        session.answer(question, right=...)
    print(session.learn())
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from slice_os.encoders import Encoder
from slice_os.encoders.info import EncoderInfo
from slice_os.engine import encode_queries
from slice_os.errors import TeachingError
from slice_os.host import one_blas_thread
from slice_os.spans import SpanTables, top_spans
from slice_os.storage.contract import Backend, SearchQuery, StoredPassage
from slice_os.teaching.model import Answer, Learning
from slice_os.teaching.pool import (
    BEST,
    FURTHER,
    RANDOM,
    READ_WHOLE,
    Pool,
    has_known_words,
    lengths_of,
)
from slice_os.teaching.record import (
    HALF,
    Estimate,
    Label,
    Prototype,
    TaughtPhrase,
    read_labels_of,
    read_taught,
)
from slice_os.teaching.retrieval import compared
from slice_os.teaching.teacher import Teacher
from slice_os.text import sentence_around
from slice_os.text.filters import Filter
from slice_os.types import Float32, Plain

GROWS_EVERY = 2
"""After how many rounds the passages that are near to the taught vector join the pool."""


@dataclass(frozen=True, slots=True)
class Question(Plain):
    """Words that somebody is asked of: whether they say what the phrase says.

    Attributes:
        document: Whose.
        passage: The number of the passage in it.
        start: Characters of the document, half-open.
        end: See `start`.
        text: These characters.
        before: What stands before them in their sentence.
        after: What stands behind them.
        probability: What the phrase as taught until now gives them.
    """

    document: str
    passage: int
    start: int
    end: int
    text: str
    before: str
    after: str
    probability: float


class Session:
    """A phrase that is being taught; `Index.teach` makes one.

    Attributes:
        name: What its matches are called.
        phrases: The phrases that it began with.
        stale: Sentences on labels whose words the index no longer has; they stay in the file.
    """

    def __init__(
        self,
        backend: Backend,
        encoder: Encoder,
        phrases: Sequence[str],
        *,
        name: str | None = None,
        output: str | Path | None = None,
        labels: Iterable[Label] = (),
        filters: Sequence[Filter] = (),
        how: Learning | None = None,
        seed: int = 0,
    ) -> None:
        """Read what is near to the phrases and some passages at random, and take labels in.

        `output` is written after every answer, so that nothing is lost whatever happens.

        Raises:
            TeachingError: There is no phrase, or nothing is in the index, or no label fits it.
            QueryError: A phrase holds no word that the encoder knows.
        """
        if not phrases:
            raise TeachingError("There is no phrase to teach: give at least one.")
        self.phrases = tuple(phrases)
        self.name = name or self.phrases[0]
        self.stale: list[str] = []
        self._backend, self._encoder, self._filters = backend, encoder, filters
        self._output = None if output is None else Path(output)
        self._labels: dict[Label, int | None] = dict.fromkeys(labels)
        """Each with the row of its passage; None of those whose words are gone."""
        self._rounds = 0
        vectors = encode_queries(encoder, self.phrases)
        mean = vectors.mean(axis=0)
        self._vector: Float32 = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
        window = self._window()
        with one_blas_thread():
            pool = Pool(window)
            for vector in vectors:
                self._find(pool, vector, BEST)
            drawn, count = _drawn(backend, filters, np.random.default_rng(seed))
            pool.add(drawn, found=False)
            if not len(pool):
                left = " that the filters leave" if filters else ""
                raise TeachingError(
                    f"{backend.location} holds no passage{left}: index some documents first."
                )
            pool.total = max(count, len(pool))
            taken = self._take(pool)
            if self._labels and not taken:
                raise TeachingError(
                    f"None of the {len(self._labels)} labels is of words that {backend.location} "
                    "holds: give the index that they were made with, or index its documents."
                )
            self.teacher = Teacher(pool, self._vector, how, seed)
            self.teacher.answers = taken
            if taken:
                self.teacher.learn()
            self._note()

    def _window(self) -> range:
        marked = [label.text for label in self._labels if label.right and label.marked]
        return lengths_of(self.phrases, marked, self._backend.meta.max_words)

    def _find(self, pool: Pool, vector: Float32, count: int) -> None:
        query = SearchQuery(
            self.phrases[0], vector, pool.window, "dense", filters=self._filters,
            ranks=range(count), depth=count, reach=count,
        )  # fmt: skip
        (nearest,) = self._backend.candidates([query])
        pool.add(candidate.stored for candidate in nearest)

    def _take(self, pool: Pool) -> list[Answer]:
        """Put the passages of labels into a pool and return the answers that they are."""
        documents = list(dict.fromkeys(label.document for label in self._labels))
        held: dict[str, list[StoredPassage]] = {}
        if documents:
            for stored in self._backend.passages(documents=documents):
                held.setdefault(stored.passage.document, []).append(stored)
        answers: dict[int, Answer] = {}
        for label in self._labels:
            place, why = _place(label, held.get(label.document, []))
            if place is None:
                self.stale.append(why)
                continue
            stored, start, end = place
            pool.add([stored])
            self._labels[label] = row = pool.rows[stored.passage.document, stored.passage.number]
            answer = Answer(row, label.right, pool.at(row, start, end) if label.right else None)
            if row not in answers or label.right or not answers[row].right:
                answers[row] = answer  # of a passage with yes and no, that which is right is known
        return list(answers.values())

    @property
    def labels(self) -> tuple[Label, ...]:
        """What has been said until now."""
        return tuple(self._labels)

    @property
    def pending(self) -> bool:
        """Whether there are answers that it has not learnt from."""
        return self.teacher.learnt != tuple(self.teacher.answers)

    def ask(self, count: int = 5) -> list[Question]:
        """Return what to ask of next, at most `count`; nothing if all is answered."""
        with one_blas_thread():
            rows = self.teacher.ask(count)
            return [self._question(row) for row in rows]

    def _question(self, row: int) -> Question:
        stored, prototype = self.teacher.pool.stored[row], self.teacher.prototype()
        tables = SpanTables(stored.packed, stored.passage.text)
        (cosines,), _ = compared(tables, [prototype])
        i, j, cosine = top_spans(cosines, tables.lengths, 1, tables.costs)[0]
        probability = float(prototype.probabilities(np.array(cosine)))
        passage, packed = stored.passage, stored.packed
        start, end = int(packed.starts[i]), int(packed.ends[j - 1])
        before, after = sentence_around(passage.text, start, end)
        return Question(
            passage.document,
            passage.number,
            passage.start + start,
            passage.start + end,
            passage.text[start:end],
            before,
            after,
            probability,
        )

    def answer(self, question: Question, right: bool, words: tuple[int, int] | None = None) -> None:
        """Take an answer: yes or no, and which words of the document are right, if marked.

        A later answer of the same passage takes the place of the former.

        Raises:
            TeachingError: The marked words are not in the passage.
        """
        row = self.teacher.pool.rows[question.document, question.passage]
        passage = self.teacher.pool.stored[row].passage
        start, end = words or (question.start, question.end)
        span = self.teacher.pool.at(row, start - passage.start, end - passage.start)
        if span is None or start < passage.start or end > passage.end:
            raise TeachingError(
                f"Characters {start} to {end} are not words of the passage that was asked of: mark "
                f"some between {passage.start} and {passage.end}."
            )
        text = passage.text[start - passage.start : end - passage.start]
        label = Label(question.document, start, end, right, text, words is not None)
        self._forget(row)
        self._labels[label] = row
        self.teacher.answers.append(Answer(row, right, span if right else None))
        self.save()

    def _forget(self, row: int) -> None:
        self.teacher.answers = [answer for answer in self.teacher.answers if answer.row != row]
        self._labels = {label: at for label, at in self._labels.items() if at != row}

    def skip(self, question: Question) -> None:
        """Leave a passage out: it is not asked of again."""
        self.teacher.skipped.add(self.teacher.pool.rows[question.document, question.passage])

    def back(self, question: Question) -> None:
        """Take the answer of a passage back, or that it was skipped."""
        row = self.teacher.pool.rows[question.document, question.passage]
        self._forget(row)
        self.teacher.skipped.discard(row)
        self.save()

    def learn(self) -> Estimate | None:
        """Learn from the answers; return what the phrase is worth, None without any."""
        with one_blas_thread():
            self.teacher.pool.window = self._window()
            self.teacher.learn()
            self._rounds += 1
            if not self.teacher.fallback and self._rounds % GROWS_EVERY == 0:
                vector = self.teacher.model.vector
                unit = (vector / np.linalg.norm(vector)).astype(np.float32)
                self._find(self.teacher.pool, unit, FURTHER)
                self.teacher.grown()
            self._note()
        self.save()
        return self._estimate

    def _note(self) -> None:
        self._prototypes: tuple[Prototype, ...] = (self.teacher.prototype(),)
        self._estimate = self.teacher.estimate()

    def estimate(self, probability: float = HALF) -> Estimate | None:
        """Return what the phrase is worth if a match has at least a probability."""
        with one_blas_thread():
            return self.teacher.estimate(probability)

    def taught(self) -> TaughtPhrase:
        """Return the phrase as it was last learnt, with all that has been said."""
        info = self._encoder.info
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        file = "" if self._output is None else str(self._output)
        return TaughtPhrase(
            self.name, self.phrases, self._prototypes, info.name, info.weights_hash, self.labels,
            self._estimate, now, file,
        )  # fmt: skip

    def save(self, path: str | Path | None = None) -> None:
        """Write the file, by default the session's output; without one, nothing."""
        path = path or self._output
        if path is not None:
            self.taught().write(path)


def _place(
    label: Label, passages: Sequence[StoredPassage]
) -> tuple[tuple[StoredPassage, int, int] | None, str]:
    """Return the passage of a label and its characters in it; else None and a sentence why."""
    if not passages:
        return (
            None,
            f"The document {label.document!r} of a label is not in the index: it is left out.",
        )

    def cut(stored: StoredPassage) -> bool:
        return label.start < stored.passage.start or label.end > stored.passage.end

    for moved in (False, True):
        for stored in sorted(passages, key=cut):
            start, end = label.start - stored.passage.start, label.end - stored.passage.start
            if moved:
                start = stored.passage.text.find(label.text) if label.text else -1
                end = start + len(label.text)
                if start < 0:
                    continue
            elif start >= len(stored.passage.text) or end <= 0:
                continue
            start, end = max(start, 0), min(end, len(stored.passage.text))
            same = not label.text or stored.passage.text[start:end] in label.text
            held = (stored.packed.ends > start).any() and has_known_words(stored)
            if start < end and same and held:
                return (stored, start, end), ""
    return None, (
        f"The document {label.document!r} has changed: characters {label.start} to {label.end} are "
        "no longer what a label is of; it is left out."
    )


def _drawn(
    backend: Backend, filters: Sequence[Filter], rng: np.random.Generator
) -> tuple[list[StoredPassage], int]:
    """Return passages at random, and how many there are to draw from.

    They are drawn of all passages, of a larger index of those of documents at random.
    """
    kept: list[StoredPassage] = []
    passages = backend.status().passages
    if filters or passages <= READ_WHOLE:
        count = 0
        for count, stored in enumerate(backend.passages(filters), start=1):  # Vitter's algorithm R
            if count <= RANDOM:
                kept.append(stored)
            elif (at := int(rng.integers(0, count))) < RANDOM:
                kept[at] = stored
        return kept, count
    at_random = rng.permutation(min(backend.count(), READ_WHOLE // 2))[:RANDOM].tolist()
    names = [info.document for at in at_random for info in backend.documents((), 1, at)]
    by_document: dict[str, list[StoredPassage]] = {}
    for stored in backend.passages(documents=names):
        by_document.setdefault(stored.passage.document, []).append(stored)
    return [held[int(rng.integers(0, len(held)))] for held in by_document.values()], passages


@dataclass(frozen=True, slots=True)
class Begun:
    """What a session begins with: the phrases, their name, and what was said before."""

    phrases: tuple[str, ...]
    name: str | None
    labels: tuple[Label, ...]


def resumed(
    phrases: str | Sequence[str] | None,
    name: str | None,
    output: str | Path | None,
    taught: TaughtPhrase | str | Path | None,
    info: EncoderInfo,
) -> Begun:
    """Return what to begin with, of what is given and of the file `output`, if there is one.

    Raises:
        TeachingError: `output` is no such file, or of other phrases, or `taught` has no label.
        EncoderMismatchError: `output` was taught with another encoder.
    """
    given = (phrases,) if isinstance(phrases, str) else tuple(dict.fromkeys(phrases or ()))
    if output is not None and Path(output).exists():
        former = read_taught(output)
        former.check(info)
        if given and given != former.phrases:
            raise TeachingError(
                f"{output} is of {', '.join(map(repr, former.phrases))}, not of "
                f"{', '.join(map(repr, given))}: give another output, or the same phrases."
            )
        return Begun(former.phrases, name or former.name, former.labels)
    if taught is None:
        return Begun(given, name, ())
    if isinstance(taught, TaughtPhrase):
        before, labels, called = taught.phrases, taught.labels, taught.name
    else:
        before, labels, called = read_labels_of(taught)
    if not labels:
        raise TeachingError(f"{called!r} has no label: there is nothing to teach anew from.")
    return Begun(given or before, name or called, labels)
