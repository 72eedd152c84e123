"""Reading test collections of information retrieval: BEIR, TREC and SMART folders.

A format is a row of `FORMATS`. Documents are streamed; queries and judgements are held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from slice_os.calibration.lines import json_rows, tsv_rows
from slice_os.corpus.rows import Fields, to_document
from slice_os.errors import CorpusError, EvaluationError
from slice_os.lab.evaluate.formats import (
    Qrels,
    read_beir_qrels,
    read_smart,
    read_smart_qrels,
    read_trec_qrels,
)
from slice_os.types import Document

DEFAULT_SPLIT = "test"


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, queries and which documents are relevant to which query.

    `documents` reads them from the start each time it is called; errors come when the row that has
    them is reached. `queries` maps the ids of the judged queries to their texts, in the order of
    the judgements; those that nobody judged are left out.
    """

    folder: Path
    documents: Callable[[], Iterator[Document]]
    queries: dict[str, str]
    qrels: Qrels


@dataclass(frozen=True, slots=True)
class Format:
    """A format of collections: how a folder of it is recognised and read."""

    files: str
    """What the folder holds, for people."""
    patterns: tuple[str, ...]
    """A file whose name fits one of these tells the format."""
    read: Callable[[Path, Path, str | None], Collection]
    """Called with the folder, that file, and the split that was asked for."""


def read_collection(folder: str | Path, split: str | None = None) -> Collection:
    """Read the collection in a folder, its format told by the files in it.

    `split` names a file of BEIR's folder qrels (``test`` where there is one, else the only one).

    Raises:
        EvaluationError: The folder holds no collection, a file or a line is not as its format has
            it, or a judged query has no text.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise EvaluationError(f"There is no folder {folder}: check the path.")
    for kind in FORMATS.values():
        if found := _find(folder, *kind.patterns):
            return kind.read(folder, found, split)
    known = "; ".join(f"{name}: {kind.files}" for name, kind in FORMATS.items())
    raise EvaluationError(f"{folder} holds no collection: give a folder with the files of {known}.")


def _find(folder: Path, *patterns: str) -> Path | None:
    return next((path for name in patterns for path in sorted(folder.glob(name))), None)


def _needed(folder: Path, what: str, *patterns: str) -> Path:
    found = _find(folder, *patterns)
    if found is None:
        raise EvaluationError(f"{folder} holds no {what}: add {' or '.join(patterns)}.")
    return found


def _collection(
    folder: Path,
    documents: Callable[[], Iterator[Document]],
    queries: dict[str, str],
    queries_file: Path,
    qrels: Qrels,
) -> Collection:
    for query, line in qrels.query_lines.items():
        if query not in queries:
            raise EvaluationError(
                f"{qrels.file}, line {line}, judges the query {query!r}, which {queries_file} does "
                "not hold: correct the id, or add the query."
            )
    judged = {query: queries[query] for query in qrels.relevance}
    return Collection(folder, documents, judged, qrels)


def _read_beir(folder: Path, corpus: Path, split: str | None) -> Collection:
    return _read_tables(folder, partial(_json_documents, corpus), split)


def _read_trec(folder: Path, corpus: Path, split: str | None) -> Collection:
    return _read_tables(folder, partial(_tsv_documents, corpus), split)


def _read_tables(
    folder: Path, documents: Callable[[], Iterator[Document]], split: str | None
) -> Collection:
    patterns = ("queries.jsonl", "queries.jsonl.gz", "queries.tsv", "queries.tsv.gz")
    file = _needed(folder, "queries", *patterns)
    rows = _json_texts(file) if ".jsonl" in file.name else tsv_rows(file)
    return _collection(folder, documents, _queries(file, rows), file, _qrels(folder, split))


def _read_smart(folder: Path, corpus: Path, split: str | None) -> Collection:
    _no_split(folder, split)
    file = _needed(folder, "queries", "*.QRY")
    rows = ((record.line, record.id, record.fields.get("W", "")) for record in read_smart(file))
    qrels = read_smart_qrels(_needed(folder, "judgements", "*.REL"))
    documents = partial(_smart_documents, corpus)
    return _collection(folder, documents, _queries(file, rows), file, qrels)


def _queries(file: Path, rows: Iterator[tuple[int, str, str]]) -> dict[str, str]:
    queries: dict[str, str] = {}
    for number, query, text in rows:
        if not text.strip():
            raise EvaluationError(
                f"{file}, line {number}, the query {query!r} has no text: fill it in or remove it."
            )
        if queries.setdefault(query, text) != text:
            raise EvaluationError(
                f"{file}, line {number}, the query {query!r} has another text than before: give "
                "each query an id of its own."
            )
    if not queries:
        raise EvaluationError(f"{file} holds no query: add some.")
    return queries


def _qrels(folder: Path, split: str | None) -> Qrels:
    splits = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
    if not splits:
        _no_split(folder, split)
        return read_trec_qrels(_needed(folder, "judgements", "qrels.txt", "qrels/*.tsv"))
    name = split or (next(iter(splits)) if len(splits) == 1 else DEFAULT_SPLIT)
    if name not in splits:
        has = f"{folder / 'qrels'} has no split {name!r}"
        raise EvaluationError(f"{has}: choose one of {', '.join(splits)}.")
    return read_beir_qrels(splits[name])


def _no_split(folder: Path, split: str | None) -> None:
    if split is not None:
        raise EvaluationError(f"{folder} has no splits: leave the split {split!r} out.")


def _json_texts(file: Path) -> Iterator[tuple[int, str, str]]:
    for number, identity, values in json_rows(file):
        yield number, identity, str(values["text"] or "")


def _json_documents(file: Path) -> Iterator[Document]:
    for number, identity, values in json_rows(file):
        title = str(values.get("title") or "")
        if not values["text"] and not title.strip():  # a few of BEIR's; no query finds them
            yield Document(identity, "")
            continue
        try:
            yield to_document(values, Fields(), identity)
        except CorpusError as exc:
            raise EvaluationError(
                f"{file}, line {number}, {exc}: correct the line or remove it."
            ) from exc


def _tsv_documents(file: Path) -> Iterator[Document]:
    for _, identity, text in tsv_rows(file):
        yield Document(identity, text)


def _smart_documents(file: Path) -> Iterator[Document]:
    for record in read_smart(file):
        title = record.fields.get("T", "")
        yield Document(record.id, f"{title}\n{record.fields.get('W', '')}".strip(), title)


FORMATS = {
    "BEIR": Format(
        "corpus.jsonl, queries.jsonl or queries.tsv, qrels/*.tsv or qrels.txt",
        ("corpus.jsonl", "corpus.jsonl.gz"),
        _read_beir,
    ),
    "TREC": Format(
        "collection.tsv, queries.tsv or queries.jsonl, qrels.txt or qrels/*.tsv",
        ("collection.tsv", "collection.tsv.gz"),
        _read_trec,
    ),
    "SMART": Format("*.ALL, *.QRY and *.REL", ("*.ALL",), _read_smart),
}
"""Name -> format, in the order in which a folder is tried."""
