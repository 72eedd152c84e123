"""The steps of a run, handed to the writer of an index and counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from slice_os.backends.base import Writer
from slice_os.encoder.phrase_head import PhraseHead
from slice_os.pipeline.planning import Step
from slice_os.pipeline.report import IndexReport
from slice_os.records import Document, Passage, Reject, Words
from slice_os.spans import PackedPassage


class Load:
    """Hands the steps to the writer and keeps count."""

    def __init__(
        self,
        writer: Writer,
        max_words: int,
        head: PhraseHead | None,
        report: IndexReport,
        on_reject: Callable[[Reject], None],
    ) -> None:
        self._writer, self._report, self._on_reject = writer, report, on_reject
        self._max_words, self._head = max_words, head
        self._state: Literal["fresh", "begun", "refused"] = "fresh"

    def take(self, step: Step, words: Words) -> None:
        """Write a passage, note that a document is unchanged or at its end, or refuse it."""
        if step.passage is not None:
            self._report.characters_done += len(step.passage.text)
        if step.problem:
            self._refuse(step.document, step.problem)
        elif step.unchanged:
            if self._writer.touch(step.document.id):
                self._report.unchanged += 1
            else:
                self._refuse(step.document, "another document of this run has the same id")
        elif step.passage is None:
            self._end(step.document, step.replaces)
        elif not step.encode or len(words):
            self._put(step.document, step.passage, words if step.encode else None)

    def _put(self, document: Document, passage: Passage, words: Words | None) -> None:
        if self._state == "fresh":
            self._state = "begun" if self._writer.begin(document) else "refused"
        if self._state == "refused":
            return
        self._report.passages += 1
        if words is None:
            self._writer.keep(passage)
        else:
            self._writer.put(
                passage, PackedPassage.pack(words, self._max_words, passage, self._head)
            )
            self._report.encoded_words += len(words)

    def _end(self, document: Document, replaces: bool) -> None:
        if self._state == "begun":
            self._report.words += self._writer.finish()
            self._report.documents += 1
            self._report.replaced += replaces
        elif self._state == "refused":
            self._refuse(document, "another document of this run has the same id")
        else:
            self._refuse(document, "it holds no word that the encoder knows")
        self._state = "fresh"

    def _refuse(self, document: Document, reason: str) -> None:
        self._report.rejected += 1
        name = str(document.id).encode("utf-8", "replace").decode()
        self._on_reject(Reject(name, reason, name))
