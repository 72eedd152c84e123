"""Labels in files: drawn samples, rows of spans, and what Argilla, Label Studio and Prodigy export.

What they have in common: a record has a text, a document, and perhaps where the text begins in it;
spans in it are marked with a name. Every marked span of the name says yes; a text that somebody has
read and not marked says no, all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from slice_os.corpus.data_files import read_rows
from slice_os.errors import EvaluationError, TeachingError
from slice_os.teaching.record import Label

YES = ("1", "yes", "y", "true", "x", "accept", "right")
NO = ("0", "no", "n", "false", "", "reject", "wrong")
COLUMNS = ("correct", "right", "label", "answer")
DOCUMENT = ("document", "document_id", "doc", "doc_id", "source", "id")
BEGINS = ("document_start", "offset", "passage_start")
NAMED = ("label", "labels", "name")
Row = Mapping[str, Any]


def read_labels(path: str | Path, name: str | None = None) -> list[Label]:
    """Return the labels of a .csv, .tsv, .jsonl or .json file, as they stand in it.

    Args:
        path: Rows with document, start, end and correct (yes or no), such as `slice-os calibrate
            --draw` writes, or records with marked spans (docs/teaching.md).
        name: Whose labels are read where a file has those of several.

    Raises:
        TeachingError: The file is not such a file, a label says neither yes nor no, or it has
            labels of several names and `name` is none of them.
    """
    path = Path(path)
    by_name: dict[str, list[Label]] = {}
    for line, row in _rows(path):
        where = f"{path}, line {line}"
        try:
            for called, label in _labels(row, where):
                by_name.setdefault(called, []).append(label)
        except (TypeError, ValueError, AttributeError, KeyError) as exc:
            raise TeachingError(f"{where}, holds no labels that can be read ({exc}).") from exc
    unnamed = by_name.pop("", [])
    if name is None and len(by_name) > 1:
        raise TeachingError(
            f"{path} has labels of {len(by_name)} names ({', '.join(list(by_name)[:5])}): say "
            "which with --name."
        )
    named = [*chain.from_iterable(by_name.values())]
    chosen = named if name is None else by_name.get(name, [])
    if not chosen and not unnamed and len(by_name) == 1:
        chosen = named  # of the one phrase that was mined, whatever it is called
    labels = chosen + unnamed
    if not labels:
        of = f" of {name!r}" if name else ""
        raise TeachingError(
            f"{path} has no label{of}: write yes or no into the column correct, or name one that "
            "it has."
        )
    return labels


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a file with the numbers of their lines, of a .json of its records."""
    if path.suffix.lower() != ".json":
        try:
            yield from read_rows(path)
        except EvaluationError as exc:
            raise TeachingError(str(exc)) from exc
        return
    try:
        records = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as exc:
        raise TeachingError(f"{path} cannot be read ({exc.strerror}): check the path.") from exc
    except ValueError as exc:
        raise TeachingError(f"{path} is no JSON that can be read ({exc}): correct it.") from exc
    records = records if isinstance(records, list) else [records]
    if not all(isinstance(record, dict) for record in records):
        raise TeachingError(f"{path} holds what is no record: give objects with labels.")
    yield from enumerate(records, start=1)


def _labels(row: Row, where: str) -> Iterator[tuple[str, Label]]:
    """Yield the names and labels of a row."""
    spans = _marked(row)
    if spans is None:
        if (label := _flat(row, where)) is not None:
            yield str(row.get("name") or ""), label
        return
    if str(row.get("answer", "")).lower() == "ignore":
        return
    document, begins = _place(row, where)
    text = _text(row)
    rejected = str(row.get("answer", "")).lower() == "reject"
    for name, start, end in spans:
        place = document, begins + start, begins + end
        yield name, Label(*place, not rejected, text[start:end], not rejected)
    if not spans and text.strip():
        yield "", Label(document, begins, begins + len(text), False, text)


def _flat(row: Row, where: str) -> Label | None:
    column = next((key for key in COLUMNS if key in row), None)
    if column is None:
        has = ", ".join(map(str, row)) or "none"
        raise TeachingError(
            f"{where}, has no column {' or '.join(COLUMNS)}, only {has}: give rows with document, "
            "start, end and correct."
        )
    word = str("" if row[column] is None else row[column]).strip().lower()
    if not word:
        return None
    if word not in YES + NO:
        raise TeachingError(f"{where}: the column {column} says {row[column]!r}: write yes or no.")
    document, _ = _place(row, where)
    try:
        start, end = int(row["start"]), int(row["end"])
    except (KeyError, TypeError, ValueError) as exc:
        raise TeachingError(
            f"{where}, has no start and end in whole numbers: they are characters of the document."
        ) from exc
    if end <= start or start < 0:
        raise TeachingError(f"{where}: no words are from {start} to {end}: end must be past start.")
    return Label(document, start, end, word in YES, str(row.get("text") or ""))


def _place(row: Row, where: str) -> tuple[str, int]:
    """Return the document of a row and where in it its text begins."""
    for held in (row, *(row[key] for key in ("meta", "metadata", "data") if key in row)):
        if isinstance(held, Mapping):
            document = next((held[key] for key in DOCUMENT[:-1] if held.get(key)), None)
            if document is not None:
                begins = next((held[key] for key in BEGINS if key in held), 0)
                return str(document), int(begins or 0)
    if row.get("id") is not None and isinstance(row["id"], str):
        return row["id"], 0
    raise TeachingError(
        f"{where}, does not say of which document it is: add document, or meta with document."
    )


def _text(row: Row) -> str:
    for held in (row, row.get("data"), row.get("fields")):
        if isinstance(held, Mapping) and isinstance(held.get("text"), str):
            return str(held["text"])
    return ""


def _marked(row: Row) -> list[tuple[str, int, int]] | None:
    """Return the names and characters of a record's marked spans; None if it is no such record."""
    if isinstance(row.get("spans"), list):  # Prodigy
        return list(_spans(row["spans"]))
    if isinstance(row.get("annotations"), list):  # Label Studio
        annotations = filter(_is_object, row["annotations"])
        results = chain.from_iterable(annotation.get("result", ()) for annotation in annotations)
        return list(_spans(result.get("value", {}) for result in filter(_is_object, results)))
    for key, held in row.items():  # Argilla: {"spans.responses": [[{...}]]}
        if key.endswith(".responses") and isinstance(held, list):
            lists = [part if isinstance(part, list) else [part] for part in held]
            return list(_spans(chain.from_iterable(lists)))
    responses = row.get("responses")
    answers: list[Any] = []
    if isinstance(responses, list):  # Argilla: [{"values": {"spans": {"value": [{...}]}}}]
        values = [response.get("values") or {} for response in filter(_is_object, responses)]
        answers = [*filter(_is_object, chain.from_iterable(each.values() for each in values))]
    elif isinstance(responses, dict):
        answers = [*filter(_is_object, chain.from_iterable(responses.values()))]
    else:
        return None
    marked = [answer.get("value") for answer in answers]
    return list(_spans(chain.from_iterable(each for each in marked if isinstance(each, list))))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _spans(marked: Iterable[Any]) -> Iterator[tuple[str, int, int]]:
    for span in marked:
        if isinstance(span, Mapping) and "start" in span and "end" in span:
            names = next((span[key] for key in NAMED if span.get(key)), "")
            name = names[0] if isinstance(names, list) else names
            yield str(name), int(span["start"]), int(span["end"])


def check_consistent(labels: Sequence[Label]) -> None:
    """Raise TeachingError if the same words have yes and no."""
    rights: dict[tuple[str, int, int], bool] = {}
    for label in labels:
        place = label.document, label.start, label.end
        if rights.setdefault(place, label.right) != label.right:
            raise TeachingError(
                f"Characters {label.start} to {label.end} of the document {label.document!r} have "
                "a label that says yes and one that says no: keep one of them."
            )


def check_labels(labels: Sequence[Label]) -> list[Label]:
    """Return labels, each once.

    Raises:
        TeachingError: The same words have yes and no, or all say yes, or all no.
    """
    unique = list(dict.fromkeys(labels))
    check_consistent(unique)
    if len({label.right for label in unique}) == 1:
        word, other = ("yes", "no") if unique[0].right else ("no", "yes")
        places = {(label.document, label.start, label.end) for label in unique}
        raise TeachingError(
            f"All {len(places)} labels say {word}, so nothing can be told apart: add some that say "
            f"{other}."
        )
    return unique
