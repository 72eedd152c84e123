"""Labels in files: drawn samples, rows of spans, and what Argilla, Label Studio and Prodigy export.

What they have in common: a record has a text, a document, and perhaps where the text begins in it;
spans in it are marked with a name. Every marked span of the name says yes; a text that somebody has
read and not marked says no, all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slice_os.corpus.formats.delimited import parse_csv, parse_tsv
from slice_os.errors import CorpusError, TeachingError
from slice_os.teaching.record import Label

YES = ("1", "yes", "y", "true", "x", "accept", "right")
NO = ("0", "no", "n", "false", "", "reject", "wrong")
SAID = ("correct", "right", "label", "answer")
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
    found: dict[str, list[Label]] = {}
    for line, row in _rows(path):
        where = f"{path}, line {line}"
        for called, label in _labels(row, where):
            found.setdefault(called, []).append(label)
    unnamed = found.pop("", [])
    if name is None and len(found) > 1:
        raise TeachingError(
            f"{path} has labels of {len(found)} names ({', '.join(list(found)[:5])}): say which "
            "with --name."
        )
    everybody = [one for some in found.values() for one in some]
    chosen = everybody if name is None else found.get(name, [])
    if not chosen and not unnamed and len(found) == 1:
        chosen = everybody  # of the one phrase that was mined, whatever it is called
    labels = chosen + unnamed
    if not labels:
        of = f" of {name!r}" if name else ""
        raise TeachingError(
            f"{path} has no label{of}: write yes or no into the column correct, or name one that "
            "it has."
        )
    return labels


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    kind = path.suffix.lower()
    try:
        if kind in (".csv", ".tsv"):
            with path.open("rb") as stream:
                for one in (parse_csv if kind == ".csv" else parse_tsv)(stream):
                    if one.problem:
                        raise TeachingError(f"{path}, line {one.line}, {one.problem}: correct it.")
                    yield one.line or one.number, one.values
            return
        text = path.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise TeachingError(f"{path} cannot be read ({exc.strerror}): check the path.") from exc
    except (CorpusError, UnicodeDecodeError) as exc:
        raise TeachingError(f"{path} is no text that can be read ({exc}): save it anew.") from exc
    if kind == ".json":
        yield from enumerate(_records(path, 1, text), start=1)
        return
    if kind not in (".jsonl", ".ndjson"):
        raise TeachingError(
            f"{path} is not read by its name: give labels as .csv, .tsv, .jsonl or .json."
        )
    for line, said in enumerate(text.splitlines(), start=1):
        if said.strip():
            for row in _records(path, line, said):
                yield line, row


def _records(path: Path, line: int, text: str) -> list[Row]:
    try:
        made = json.loads(text)
    except ValueError as exc:
        raise TeachingError(f"{path}, line {line}, is no JSON ({exc}): correct it.") from exc
    made = made if isinstance(made, list) else [made]
    if not all(isinstance(one, dict) for one in made):
        raise TeachingError(f"{path}, line {line}, holds no record: give objects with labels.")
    return made


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
    for own, start, end in spans:
        yield (
            own,
            Label(
                document, begins + start, begins + end, not rejected, text[start:end], not rejected
            ),
        )
    if not spans and text.strip():
        yield "", Label(document, begins, begins + len(text), False, text)


def _flat(row: Row, where: str) -> Label | None:
    column = next((key for key in SAID if key in row), None)
    if column is None:
        has = ", ".join(map(str, row)) or "none"
        raise TeachingError(
            f"{where}, has no column {' or '.join(SAID)}, only {has}: give rows with document, "
            "start, end and correct."
        )
    said = row[column]
    word = str("" if said is None else said).strip().lower()
    if not word:
        return None
    if word not in YES + NO:
        raise TeachingError(f"{where}: the column {column} says {said!r}: write yes or no.")
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
        results = [one.get("result", ()) for one in row["annotations"] if isinstance(one, dict)]
        values = [one.get("value", {}) for some in results for one in some if isinstance(one, dict)]
        return list(_spans(values))
    for key, held in row.items():  # Argilla: {"spans.responses": [[{...}]]}
        if key.endswith(".responses") and isinstance(held, list):
            flat = [one for some in held for one in (some if isinstance(some, list) else [some])]
            return list(_spans(flat))
    responses = row.get("responses")
    if isinstance(responses, list):  # Argilla: [{"values": {"spans": {"value": [{...}]}}}]
        values = [one.get("values") or {} for one in responses if isinstance(one, dict)]
        held = [
            one.get("value") for some in values for one in some.values() if isinstance(one, dict)
        ]
        return list(_spans([one for some in held if isinstance(some, list) for one in some]))
    if isinstance(responses, dict):
        some = [one.get("value") for many in responses.values() for one in many]
        return list(_spans([one for held in some if isinstance(held, list) for one in held]))
    return None


def _spans(marked: Iterable[Any]) -> Iterator[tuple[str, int, int]]:
    for one in marked:
        if isinstance(one, Mapping) and "start" in one and "end" in one:
            said = next((one[key] for key in NAMED if one.get(key)), "")
            name = said[0] if isinstance(said, Sequence) and not isinstance(said, str) else said
            yield str(name), int(one["start"]), int(one["end"])


def check_labels(labels: Sequence[Label]) -> list[Label]:
    """Return labels, each once.

    Raises:
        TeachingError: The same words have yes and no, or all say yes, or all no.
    """
    once = list(dict.fromkeys(labels))
    said: dict[tuple[str, int, int], bool] = {}
    for one in once:
        place = one.document, one.start, one.end
        if said.setdefault(place, one.right) != one.right:
            raise TeachingError(
                f"Characters {one.start} to {one.end} of the document {one.document!r} have a "
                "label that says yes and one that says no: keep one of them."
            )
    if len(set(said.values())) == 1:
        word, other = ("yes", "no") if once[0].right else ("no", "yes")
        raise TeachingError(
            f"All {len(said)} labels say {word}, so nothing can be told apart: add some that say "
            f"{other}."
        )
    return once
