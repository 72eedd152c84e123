"""A language model behind an OpenAI-compatible endpoint, and its answers kept as they come.

A row of a .jsonl file is an answer: an interrupted run goes on from what is there.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from slice_os.errors import EvaluationError
from slice_os.files import whole

BASE_URL, MODEL, KEY = "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_API_KEY"
_RETRIED = (408, 429, 500, 502, 503, 504)


class Endpoint:
    """Chat completions of a model, with retries where the server is busy or slow.

    Attributes:
        model: The model's name.
    """

    def __init__(
        self,
        base_url: str | None = None,
        model: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 5,
    ) -> None:
        """Use the address and the model given, or those of the environment.

        The key is read from OPENAI_API_KEY alone and never shown; a server at home needs none.

        Args:
            base_url: Such as ``http://localhost:8000/v1``; OPENAI_BASE_URL if None.
            model: OPENAI_MODEL if None.
            timeout: Seconds that an answer may take.
            retries: How often a request is sent again after a busy, slow or broken answer.

        Raises:
            EvaluationError: The address or the model is not known.
        """
        import urllib3

        address = base_url or os.environ.get(BASE_URL, "")
        self.model = model or os.environ.get(MODEL, "")
        if not address.startswith(("http://", "https://")):
            raise EvaluationError(
                f"No language model is known: set {BASE_URL}, such as http://localhost:8000/v1."
            )
        if not self.model:
            raise EvaluationError(
                "The language model has no name",
                hint=f"set {MODEL}, or give --model.",
            )
        self._url = address.rstrip("/") + "/chat/completions"
        self._key = os.environ.get(KEY, "")
        self._http = urllib3.PoolManager(
            maxsize=32,
            timeout=urllib3.Timeout(connect=10, read=timeout),
            retries=urllib3.Retry(
                retries,
                backoff_factor=0.5,
                backoff_jitter=0.5,
                status_forcelist=_RETRIED,
                allowed_methods=None,
                raise_on_status=False,
            ),
        )

    def complete(self, prompt: str) -> str:
        """Return the model's answer to `prompt`; an answer without text is "".

        Raises:
            EvaluationError: The server cannot be reached, refuses, or gives no such answer.
        """
        import urllib3

        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}]}
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            answer = self._http.request("POST", self._url, json=body, headers=headers)
        except urllib3.exceptions.HTTPError as exc:
            raise EvaluationError(
                f"The language model at {self._url} cannot be reached ({type(exc).__name__}): "
                f"check {BASE_URL}; the same command goes on from here."
            ) from exc
        if answer.status >= 400:
            reason = " ".join(answer.data.decode("utf-8", "replace").split())[:120]
            raise EvaluationError(
                f"The language model at {self._url} refuses with status {answer.status} "
                f"({reason or 'no reason given'}): check {KEY}, {MODEL} and {BASE_URL}; the same "
                "command goes on from here."
            )
        try:
            text: Any = json.loads(answer.data)["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError) as exc:
            raise EvaluationError(
                f"{self._url} does not answer as an OpenAI-compatible endpoint: check {BASE_URL}."
            ) from exc
        return text if isinstance(text, str) else ""


Row = Mapping[str, Any]
Question = TypeVar("Question")


class Answers:
    """A .jsonl file of answers; beside it, FILE.about.json says of which model and prompt.

    Attributes:
        rows: What the file held when it was opened.
    """

    def __init__(self, out: str | Path, about: Row) -> None:
        """Open `out`, or begin it; a last line that is cut short is removed."""
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
        """Return some fields of each row."""
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

        `answer` is called in several threads and gives a row, or None and the reason; `progress`
        is told how many rows were added, and the failures.
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
                    for done in as_completed([pool.submit(ask, each) for each in questions]):
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
