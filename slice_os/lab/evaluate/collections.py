"""Test collections of information retrieval: BEIR, TREC and SMART folders, and TREC run files.

A format is a row of `FORMATS`. Documents are streamed; queries and judgements are held.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from slice_os.corpus import data_files
from slice_os.corpus.data_files import numbered_lines, read_rows
from slice_os.corpus.rows import ID_FIELDS, Fields, clean, to_document
from slice_os.errors import CorpusError, EvaluationError, needs
from slice_os.types import Document

DEFAULT_SPLIT = "test"
HIGHEST = 1_000
"""The highest grade of relevance: trec_eval makes room for every grade up to it."""
_RECORD = re.compile(r"\.I\s+(\S+)\s*$")
_FIELD = re.compile(r"\.([A-Z])\s*$")
Ranking = Mapping[str, float]
"""Document -> score."""
Run = dict[str, Ranking]
"""Query -> its ranking."""


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
        if abs(relevance) > HIGHEST:
            raise EvaluationError(
                f"{self.file}, line {line}, has the relevance {relevance}: make it a whole number "
                f"of at most {HIGHEST:,}."
            )
        known = self.relevance.setdefault(query, {}).setdefault(document, relevance)
        if known != relevance:
            raise EvaluationError(
                f"{self.file}, line {line}, gives document {document!r} the relevance {relevance} "
                f"for query {query!r}, an earlier line {known}: remove one of them."
            )
        self.query_lines.setdefault(query, line)
        self.document_lines.setdefault(document, line)


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


def read_collection(folder: str | Path, split: str | None = None) -> Collection:
    """Read the collection in a folder, its format told by the files in it.

    `split` names a file of BEIR's folder qrels (``test`` where there is one, else the only one).

    Raises:
        EvaluationError: The folder holds no collection, a file or a line is not as its format has
            it, or a judged query has no text.
        MissingExtraError: ir_measures is not installed.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise EvaluationError(f"There is no folder {folder}: check the path.")
    for form in FORMATS.values():
        if corpus := _find(folder, *form.patterns):
            return form.read(folder, corpus, split)
    known = "; ".join(f"{name}: {form.files}" for name, form in FORMATS.items())
    raise EvaluationError(f"{folder} holds no collection: give a folder with the files of {known}.")


def _find(folder: Path, *patterns: str) -> Path | None:
    return next((path for name in patterns for path in sorted(folder.glob(name))), None)


def _needed(folder: Path, what: str, *patterns: str) -> Path:
    path = _find(folder, *patterns)
    if path is None:
        raise EvaluationError(f"{folder} holds no {what}: add {' or '.join(patterns)}.")
    return path


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


def _read_tables(folder: Path, corpus: Path, split: str | None) -> Collection:
    """Read BEIR's and TREC's files, which may be mixed."""
    patterns = ("queries.jsonl", "queries.jsonl.gz", "queries.tsv", "queries.tsv.gz")
    file = _needed(folder, "queries", *patterns)
    texts = ((line, query, str(values["text"] or "")) for line, query, values in _texts(file))
    documents = partial(_documents, corpus)
    return _collection(folder, documents, _queries(file, texts), file, _qrels(folder, split))


def _texts(file: Path) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Yield line, id and fields of each object of a .jsonl, or each line ``id<TAB>text``."""
    if ".jsonl" in file.name:
        for line, values in read_rows(file):
            identity = data_files.field(file, line, values, ID_FIELDS)
            if "text" not in values:
                raise EvaluationError(
                    f"{file}, line {line}, has no field 'text': add it or remove the line."
                )
            yield line, clean(identity), values
        return
    for line, record in numbered_lines(file):
        identity, tab, text = record.partition("\t")
        if not identity.strip() or not tab or "\t" in text:
            raise EvaluationError(
                f"{file}, line {line}, is not an id, a tab and a text: correct it or remove it."
            )
        yield line, identity.strip(), {"text": text}


def _documents(file: Path) -> Iterator[Document]:
    for line, identity, values in _texts(file):
        title = str(values.get("title") or "")
        if not values["text"] and not title.strip():  # a few of BEIR's; no query finds them
            yield Document(identity, "")
        elif ".jsonl" not in file.name:
            yield Document(identity, values["text"])
        else:
            try:
                yield to_document(values, Fields(), identity)
            except CorpusError as exc:
                raise EvaluationError(
                    f"{file}, line {line}, {exc}: correct the line or remove it."
                ) from exc


def _queries(file: Path, texts: Iterator[tuple[int, str, str]]) -> dict[str, str]:
    queries: dict[str, str] = {}
    for line, query, text in texts:
        if not text.strip():
            raise EvaluationError(
                f"{file}, line {line}, the query {query!r} has no text: fill it in or remove it."
            )
        if queries.setdefault(query, text) != text:
            raise EvaluationError(
                f"{file}, line {line}, the query {query!r} has another text than before: give "
                "each query an id of its own."
            )
    if not queries:
        raise EvaluationError(f"{file} holds no query: add some.")
    return queries


def _qrels(folder: Path, split: str | None) -> Qrels:
    splits = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
    if not splits:
        _no_split(folder, split)
        return _read_trec_qrels(_needed(folder, "judgements", "qrels.txt", "qrels/*.tsv"))
    name = split or (next(iter(splits)) if len(splits) == 1 else DEFAULT_SPLIT)
    if name not in splits:
        has = f"{folder / 'qrels'} has no split {name!r}"
        raise EvaluationError(f"{has}: choose one of {', '.join(splits)}.")
    return _read_beir_qrels(splits[name])


def _no_split(folder: Path, split: str | None) -> None:
    if split is not None:
        raise EvaluationError(f"{folder} has no splits: leave the split {split!r} out.")


def _ir_measures() -> ModuleType:
    with needs("Evaluating retrieval", "evaluate"):
        import ir_measures
    return ir_measures


def _parsed(path: Path, parse: Callable[[str], Any], columns: str) -> Iterator[tuple[int, Any]]:
    """Yield the number of each line and what `parse`, of ir_measures, makes of it."""
    for number, line in numbered_lines(path):
        try:
            (record,) = parse(f"{line}\n")
        except ValueError as exc:
            raise EvaluationError(
                f"{path}, line {number}, is not {columns} ({exc}): correct it or remove it."
            ) from exc
        yield number, record


def _read_trec_qrels(path: Path) -> Qrels:
    qrels = Qrels(path)
    columns = "a query, an iteration, a document and a relevance"
    for line, judgement in _parsed(path, _ir_measures().read_trec_qrels, columns):
        qrels.add(line, judgement.query_id, judgement.doc_id, judgement.relevance)
    return qrels


def _read_beir_qrels(path: Path) -> Qrels:
    """Read a .tsv whose first line names the columns query-id, corpus-id and score."""
    qrels = Qrels(path)
    for line, values in read_rows(path):
        query, document = (
            data_files.field(path, line, values, (name,)) for name in ("query-id", "corpus-id")
        )
        score = data_files.score(path, line, values, ("score",), (-HIGHEST, HIGHEST))
        if not score.is_integer():
            raise EvaluationError(f"{path}, line {line}, has the score {score}: make it whole.")
        qrels.add(line, query, document, int(score))
    if not qrels.relevance:
        raise EvaluationError(f"{path} holds no judgement below its first line: add some.")
    return qrels


def _read_smart_qrels(path: Path) -> Qrels:
    """Read lines ``query document …`` of a .REL file; each says that one is relevant."""
    qrels = Qrels(path)
    for line, text in numbered_lines(path):
        values = text.split()
        if len(values) < 2:
            raise EvaluationError(f"{path}, line {line}, has one column: make it query, document.")
        qrels.add(line, values[0], values[1], 1)
    return qrels


def read_run(path: str | Path) -> Run:
    """Read lines ``query Q0 document rank score tag``, of which the score alone ranks.

    Raises:
        EvaluationError: The file or a line of it is not so, or names a document twice for a query.
        MissingExtraError: ir_measures is not installed.
    """
    path = Path(path)
    run: dict[str, dict[str, float]] = {}
    columns = "a query, Q0, a document, a rank, a score and a tag"
    for line, ranked in _parsed(path, _ir_measures().read_trec_run, columns):
        ranking = run.setdefault(ranked.query_id, {})
        if ranked.doc_id in ranking or not math.isfinite(ranked.score):
            raise EvaluationError(
                f"{path}, line {line}, names the document {ranked.doc_id!r} again for query "
                f"{ranked.query_id!r}, or has no number as its score: correct it or remove it."
            )
        ranking[ranked.doc_id] = ranked.score
    return {**run}


def run_lines(run: Run, tag: str) -> list[str]:
    """Return a run as lines of a TREC run file, each query's best score first.

    Scores are written in full, so a run that is read again measures the same.
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


def _read_smart(folder: Path, corpus: Path, split: str | None) -> Collection:
    _no_split(folder, split)
    file = _needed(folder, "queries", "*.QRY")
    texts = ((line, query, fields.get("W", "")) for line, query, fields in _records(file))
    qrels = _read_smart_qrels(_needed(folder, "judgements", "*.REL"))
    documents = partial(_smart_documents, corpus)
    return _collection(folder, documents, _queries(file, texts), file, qrels)


def _smart_documents(file: Path) -> Iterator[Document]:
    for _, identity, fields in _records(file):
        title = fields.get("T", "")
        yield Document(identity, f"{title}\n{fields.get('W', '')}".strip(), title)


def _records(path: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Yield the line in which a record begins, its id, and its fields on one line each."""
    record: tuple[int, str, dict[str, str]] | None = None
    name = ""
    for number, line in numbered_lines(path):
        if begun := _RECORD.match(line):
            if record is not None:
                yield record
            record, name = (number, begun[1], {}), ""
        elif record is None:
            raise EvaluationError(
                f"{path}, line {number}, is {line.strip()[:40]!r}: a SMART file begins with "
                "'.I NUMBER'."
            )
        elif named := _FIELD.match(line):
            name = named[1]
        else:
            fields, text = record[2], " ".join(line.split())
            fields[name] = f"{fields[name]} {text}" if name in fields else text
    if record is not None:
        yield record


class Format(NamedTuple):
    """A format of collections: what its folder holds, for people, and how it is read.

    A file whose name fits one of `patterns` tells the format; `read` is called with the folder,
    that file, and the split that was asked for.
    """

    files: str
    patterns: tuple[str, ...]
    read: Callable[[Path, Path, str | None], Collection]


FORMATS = {
    "BEIR": Format(
        "corpus.jsonl, queries.jsonl or queries.tsv, qrels/*.tsv or qrels.txt",
        ("corpus.jsonl", "corpus.jsonl.gz"),
        _read_tables,
    ),
    "TREC": Format(
        "collection.tsv, queries.tsv or queries.jsonl, qrels.txt or qrels/*.tsv",
        ("collection.tsv", "collection.tsv.gz"),
        _read_tables,
    ),
    "SMART": Format("*.ALL, *.QRY and *.REL", ("*.ALL",), _read_smart),
}
"""Name -> format, in the order in which a folder is tried."""
