"""What a run says on stderr, its progress and its log, and what it has counted at its end."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from slice_os.cli.output import plain, shorten
from slice_os.errors import CorpusError
from slice_os.files import write_whole
from slice_os.types import OnProgress, Plain, Reject

if TYPE_CHECKING:
    from tqdm import tqdm

    from slice_os.ingest import IndexReport

_log = logging.getLogger("slice_os.cli")


class _JsonLines(logging.Handler):
    """Writes each record to stderr as one JSON object."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record's time (UTC), level, logger, message, and the fields it comes with."""
        when = datetime.fromtimestamp(record.created, timezone.utc)
        line: dict[str, Any] = {
            "time": when.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0]:
            line["exception"] = record.exc_info[0].__name__  # its text may quote a document
        _write(json.dumps(line, ensure_ascii=False, default=str))


_json_lines = _JsonLines()


class _TextLines(logging.Handler):
    """Writes each record to stderr as a line with its time (UTC)."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the time and the message."""
        when = datetime.fromtimestamp(record.created, timezone.utc)
        text = plain(self.format(record))
        _write(f"{when.isoformat(timespec='seconds').removesuffix('+00:00')}Z {text}")


@contextmanager
def server_log() -> Iterator[None]:
    """Show the log of a server within a block, in the form that was asked for."""
    logger, handler = logging.getLogger("slice_os.server"), _json_lines
    shown: logging.Handler = handler if is_json() else _TextLines()
    former = logger.level, logger.propagate
    logger.addHandler(shown)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(shown)
        logger.level, logger.propagate = former


def is_json() -> bool:
    """Tell whether the log is in JSON."""
    return _json_lines in _log.handlers


@contextmanager
def json_log() -> Iterator[None]:
    """Make every line of the log, within a block, a JSON object: ours, Python's, other libraries'.

    Of theirs the same that would be shown as text.
    """
    if is_json():
        yield
        return
    last, ours = logging.lastResort, [_log, logging.getLogger("py.warnings")]
    logging.lastResort = _JsonLines(logging.WARNING)
    logging.captureWarnings(True)
    for logger in ours:
        logger.addHandler(_json_lines)
    _log.setLevel(logging.INFO)
    try:
        yield
    finally:
        _log.setLevel(logging.NOTSET)
        for logger in ours:
            logger.removeHandler(_json_lines)
        logging.captureWarnings(False)
        logging.lastResort = last


def _write(line: str) -> None:
    from tqdm import tqdm  # here, since every verb would wait for it

    tqdm.write(line, file=sys.stderr)


def say(message: str, level: int = logging.WARNING, **fields: Any) -> None:
    """Write a line to stderr, above a progress bar; in a log in JSON, with fields."""
    if is_json():
        _log.log(level, "%s", message, extra={"fields": fields})
    else:
        _write(plain(message))


def say_reject(reject: Reject) -> None:
    """Say what was skipped, and why."""
    # A reason may quote the document.
    line = reject.place if is_json() else f"{reject.place}: {reject.reason}"
    say(f"Rejected: {shorten(line, 300)}")


def progress_bar(total: float | None) -> tqdm[NoReturn]:
    """Return a bar on stderr that only a terminal shows: share done, description, time left.

    A log in JSON has none.
    """
    from tqdm import tqdm

    form = "{percentage:3.0f}% |{bar:20}| {desc}, {remaining} left"
    hidden = True if is_json() else None  # None: where there is no terminal
    return tqdm(total=total, delay=1, leave=False, disable=hidden, bar_format=form)


def show_done(bar: tqdm[NoReturn], bytes_read: int, now: IndexReport) -> None:
    """Move a bar to the bytes whose text has been taken: reading is ahead of encoding."""
    share = now.characters_done / now.characters_read if now.characters_read else 0
    bar.update(bytes_read * min(share, 1) - bar.n)


@contextmanager
def share_bar(doing: str) -> Iterator[OnProgress]:
    """Give a function that shows on a terminal what share of something is done."""
    with progress_bar(1.0) as bar:
        bar.set_description_str(doing, refresh=False)
        yield lambda share: bar.update(max(share - bar.n, 0))


@contextmanager
def text_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that shows on a terminal which texts are read, how many, and of how many."""
    from tqdm import tqdm

    with tqdm(unit="text", disable=None) as bar:

        def show(name: str, done: int, count: int) -> None:
            bar.set_description(name, refresh=False)
            bar.total = count
            bar.update(done - bar.n)

        yield show


class Run:
    """A run of a long verb, as a context: what it counts is told at its end, however it ends.

    Args:
        verb: Its name.
        location: The index that it works on.
        metrics: Where to write the counters in Prometheus' text format, if anywhere.

    Attributes:
        report: What the verb counts, live; None before there is anything.
        more: Numbers to tell besides, or instead of those of the report.
    """

    def __init__(self, verb: str, location: str, metrics: Path | None) -> None:
        self._verb, self._metrics = verb, metrics
        scheme, separator, rest = location.partition("://")
        # Somebody will write a password there, though it is refused.
        self._location = f"{scheme}://{rest.rpartition('@')[2]}" if separator else location
        self.report: Plain | None = None
        self.more: dict[str, float] = {}

    def __enter__(self) -> Run:
        if self._metrics and not self._metrics.absolute().parent.is_dir():
            raise CorpusError(f"{self._metrics} cannot be written: there is no such folder.")
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        code = _exit_code(error)
        counters = {
            **(self.report.to_dict() if self.report else {}),
            **self.more,
            "exit_code": code,
        }
        numbers = {name: value for name, value in counters.items() if type(value) in (int, float)}
        if is_json():
            say(
                f"{self._verb} ended with exit code {code}.",
                logging.INFO,
                verb=self._verb,
                index=self._location,
                **numbers,
            )
        if self._metrics:
            labels = {"verb": self._verb, "index": self._location}
            text = prometheus_text({**numbers, "end_timestamp_seconds": time.time()}, labels)
            try:
                write_whole(self._metrics, text)
            except OSError as exc:
                reason = f"{self._metrics} cannot be written: {exc.strerror}."
                if error is None:
                    raise CorpusError(reason) from exc
                say(reason)


def _exit_code(error: BaseException | None) -> int:
    """Return the exit code that an error comes to."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 0 if error is None else int(getattr(error, "exit_code", 1))


def prometheus_text(numbers: Mapping[str, float], labels: Mapping[str, str]) -> str:
    """Return numbers as gauges ``slice_os_run_NAME`` in Prometheus' text exposition format 0.0.4.

    Gauges, since each run begins at 0: they are those of the last run.
    """
    quoted = {
        name: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        for name, value in labels.items()
    }
    label_text = ",".join(f'{name}="{value}"' for name, value in quoted.items())
    return "".join(
        f"# TYPE slice_os_run_{name} gauge\nslice_os_run_{name}{{{label_text}}} {value}\n"
        for name, value in numbers.items()
    )
