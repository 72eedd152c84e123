"""A language model's answers to many questions, kept as they come.

A row of a .jsonl file is an answer. An interrupted run goes on from what is there, and no answer is
paid for twice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from slice_os.errors import EvaluationError
from slice_os.files import whole

Row = Mapping[str, Any]
Question = TypeVar("Question")


class Answers:
    """A .jsonl file of answers; beside it, FILE.about.json says of which model and prompt.

    Attributes:
        rows: What the file held when it was opened.
    """

    def __init__(self, out: str | Path, about: Row) -> None:
        """Open `out`, or begin it; a last line that is cut short is removed.

        Raises:
            EvaluationError: It has another name, belongs to another prompt or model, is damaged, or
                cannot be written.
        """
        self._out = out = Path(out)
        if out.suffix != ".jsonl":
            raise EvaluationError(f"{out} must end in .jsonl: rows are added to it one by one.")
        described = out.with_name(f"{out.name}.about.json")
        self.rows: Sequence[Any] = []
        try:
            if not out.exists():
                with whole(described) as partial:
                    text = json.dumps(about, ensure_ascii=False, indent=2)
                    partial.write_text(text, encoding="utf-8")
                return
            if not described.is_file() or json.loads(described.read_text("utf-8")) != about:
                raise EvaluationError(
                    f"{out} was made with another model or prompt (see {described.name}): give "
                    "another file."
                )
            data = out.read_bytes()
            complete = data[: data.rfind(b"\n") + 1]
            if complete != data:
                with out.open("r+b") as file:
                    file.truncate(len(complete))
            self.rows = [json.loads(line) for line in complete.splitlines()]
        except ValueError as exc:
            raise self._damaged(exc) from exc
        except OSError as exc:
            raise EvaluationError(
                f"{out} cannot be written ({exc.strerror}): check the path."
            ) from exc

    def fields(self, *names: str) -> list[tuple[str, ...]]:
        """Return some fields of each row.

        Raises:
            EvaluationError: A row lacks one.
        """
        try:
            return [tuple(str(row[name]) for name in names) for row in self.rows]
        except (KeyError, TypeError) as exc:
            raise self._damaged(exc) from exc

    def ask(
        self,
        questions: Sequence[Question],
        answer: Callable[[Question], tuple[Row | None, str]],
        workers: int,
        progress: Callable[[int, Mapping[str, int]], None] | None = None,
    ) -> tuple[int, Counter[str]]:
        """Add the rows that `answer` gives; return how many, and why the others are none.

        Args:
            questions: What to ask for.
            answer: Called in several threads; gives a row, or None and the reason.
            workers: How many questions are asked at once.
            progress: Is told how many rows were added, and the failures.

        Raises:
            EvaluationError: The file cannot be written, or `answer` raises it.
        """
        failures: Counter[str] = Counter()
        added = 0
        lock = Lock()

        def ask(question: Question) -> None:
            nonlocal added
            row, reason = answer(question)
            with lock:
                if row is not None:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                    file.flush()
                    added += 1
                else:
                    failures[reason] += 1
                if progress:
                    progress(added, failures)

        try:
            with (
                self._out.open("a", encoding="utf-8") as file,
                ThreadPoolExecutor(workers) as pool,
            ):
                try:
                    for done in as_completed([pool.submit(ask, one) for one in questions]):
                        done.result()
                finally:  # Ctrl-C, or a server that refuses: answers under way are still kept
                    pool.shutdown(wait=True, cancel_futures=True)
        except OSError as exc:
            raise EvaluationError(
                f"{self._out} cannot be written ({exc.strerror}): make room."
            ) from exc
        return added, failures

    def _damaged(self, exc: Exception) -> EvaluationError:
        return EvaluationError(f"{self._out} is damaged ({exc}): remove it, or give another.")
