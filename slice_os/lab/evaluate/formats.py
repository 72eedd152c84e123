"""Files of test collections: judgements (qrels), SMART's records, and TREC's run files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slice_os.calibration.lines import columns, numbered_lines, spaced_rows, whole_number
from slice_os.errors import EvaluationError

BEIR_COLUMNS = ("query-id", "corpus-id", "score")
TREC_COLUMNS = ("query", "iteration", "document", "relevance")
_RECORD = re.compile(r"\.I\s+(\S+)\s*$")
_FIELD = re.compile(r"\.([A-Z])\s*$")
Ranking = Mapping[str, float]
"""Document -> score."""
Run = dict[str, Ranking]
"""Query -> its ranking."""
RUN_COLUMNS = ("query", "Q0", "document", "rank", "score", "tag")


@dataclass(slots=True)
class Qrels:
    """The judgements of a file: query -> document -> relevance.

    `query_lines` and `document_lines` tell in which line an id first stands, for error messages.
    """

    file: Path
    relevance: dict[str, dict[str, int]] = field(default_factory=dict)
    query_lines: dict[str, int] = field(default_factory=dict)
    document_lines: dict[str, int] = field(default_factory=dict)

    def add(self, line: int, query: str, document: str, relevance: int) -> None:
        """Take a judgement in; EvaluationError if another line contradicts it."""
        known = self.relevance.setdefault(query, {}).setdefault(document, relevance)
        if known != relevance:
            raise EvaluationError(
                f"{self.file}, line {line}, gives document {document!r} the relevance {relevance} "
                f"for query {query!r}, an earlier line {known}: remove one of them."
            )
        self.query_lines.setdefault(query, line)
        self.document_lines.setdefault(document, line)


def read_trec_qrels(path: Path) -> Qrels:
    """Read lines ``query iteration document relevance``, separated by white space.

    Raises:
        EvaluationError: The file or a line of it is not so.
    """
    qrels = Qrels(path)
    for number, place, values in spaced_rows(path, TREC_COLUMNS):
        query, _, document, relevance = values
        qrels.add(number, query, document, whole_number(relevance, place, "relevance"))
    return qrels


def read_beir_qrels(path: Path) -> Qrels:
    """Read a .tsv whose first line names the columns query-id, corpus-id and score.

    Raises:
        EvaluationError: The file or a line of it is not so.
    """
    qrels = Qrels(path)
    rows = _rows(path)
    number, header = next(rows)
    missing = [name for name in BEIR_COLUMNS if name not in header]
    if missing:
        raise EvaluationError(
            f"{path}, line {number}, misses the column {missing[0]}: make the first line the names "
            f"{', '.join(BEIR_COLUMNS)}, with tabs between them."
        )
    places = [header.index(name) for name in BEIR_COLUMNS]
    for number, values in rows:
        place = f"{path}, line {number},"
        if len(values) != len(header):
            raise EvaluationError(
                f"{place} has {columns(values)}, the first line {len(header)}: make them the same."
            )
        query, document, score = (values[column] for column in places)
        qrels.add(number, query, document, whole_number(score, place, "score"))
    if not qrels.relevance:
        raise EvaluationError(f"{path} holds no judgement below its first line: add some.")
    return qrels


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in numbered_lines(path):
        yield number, [value.strip() for value in line.split("\t")]


def read_smart_qrels(path: Path) -> Qrels:
    """Read lines ``query document …`` of a SMART .REL file; each says that one is relevant.

    Raises:
        EvaluationError: The file or a line of it is not so.
    """
    qrels = Qrels(path)
    for number, line in numbered_lines(path):
        values = line.split()
        if len(values) < 2:
            raise EvaluationError(
                f"{path}, line {number}, has one column: make it query, document."
            )
        qrels.add(number, values[0], values[1], 1)
    return qrels


@dataclass(slots=True)
class SmartRecord:
    """A document or a query: its id, the line it begins in, and its fields on one line each."""

    id: str
    line: int
    fields: dict[str, str] = field(default_factory=dict)


def read_smart(path: Path) -> Iterator[SmartRecord]:
    """Yield the records of a file, in its order.

    Raises:
        EvaluationError: The file cannot be read, or does not begin with a record.
    """
    record: SmartRecord | None = None
    name = ""
    for number, line in numbered_lines(path):
        if begun := _RECORD.match(line):
            if record is not None:
                yield record
            record, name = SmartRecord(begun[1], number), ""
        elif record is None:
            raise EvaluationError(
                f"{path}, line {number}, is {line.strip()[:40]!r}: a SMART file begins with "
                "'.I NUMBER'."
            )
        elif found := _FIELD.match(line):
            name = found[1]
        else:
            text = " ".join(line.split())
            record.fields[name] = f"{record.fields[name]} {text}" if name in record.fields else text
    if record is not None:
        yield record


def read_run(path: str | Path) -> Run:
    """Read lines ``query Q0 document rank score tag``, of which the score alone ranks.

    Raises:
        EvaluationError: The file or a line of it is not so, or names a document twice for a query.
    """
    path = Path(path)
    run: dict[str, dict[str, float]] = {}
    for _, place, values in spaced_rows(path, RUN_COLUMNS):
        query, _, document, _, text, _ = values
        ranking = run.setdefault(query, {})
        if document in ranking:
            raise EvaluationError(
                f"{place} names the document {document!r} again for query {query!r}: remove one."
            )
        ranking[document] = _score(text, place)
    return {**run}


def _score(text: str, place: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise EvaluationError(f"{place} has the score {text!r}: make it a number.")
    return score


def run_lines(run: Run, tag: str) -> list[str]:
    """Return a run as lines of a TREC run file, each query's best score first.

    Scores are written in full, so a run that is read again measures the same.

    Raises:
        EvaluationError: An id holds white space, which the format cannot hold.
    """
    for name in {*run, *(document for ranking in run.values() for document in ranking)}:
        if len(name.split()) != 1:
            raise EvaluationError(
                f"The id {name!r} cannot stand in a TREC run file: leave the output out, or give "
                "ids without spaces."
            )
    return [
        f"{query} Q0 {document} {rank} {score!r} {tag}"
        for query, ranking in run.items()
        for rank, (document, score) in enumerate(
            sorted(ranking.items(), key=lambda item: -item[1]), start=1
        )
    ]


def run_name(label: str) -> str:
    """Return the name of a setting's run file."""
    return f"{re.sub('[^A-Za-z0-9._-]+', '-', label)}.run"
