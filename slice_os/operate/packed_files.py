"""Packed passages as Parquet files: what a corpus is encoded to, for any index to take (`load`).

A folder holds ``meta.json`` and files, each whole or not there. A row is a passage, the rows of a
document stand together, and a document of a later file replaces that of a former one
(docs/scaling.md has the columns).
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from slice_os.errors import LocationError, needs
from slice_os.files import write_whole
from slice_os.run_stats import Effort
from slice_os.spans import PackedPassage
from slice_os.storage.contract import IndexMeta, StoredDocument, StoredPassage, Writer
from slice_os.types import Document, Passage, Reject

META = "meta.json"
FORMAT = 1
_GROUP = 256
"""Passages of a row group, more only of one document."""
_COLUMNS = (
    *(("document", "string"), ("hash", "string"), ("source", "string"), ("title", "string")),
    *(("metadata", "string"), ("passage", "int32"), ("start", "int64"), ("end", "int64")),
    *(("text", "string"), ("words", "binary")),
)


class PackedFolder:
    """The documents of a folder of packed passages, which `index_documents` and `Copier` take.

    Raises:
        LocationError: there is something else.
        MissingExtraError: pyarrow is not there.
    """

    def __init__(self, folder: Path, meta: IndexMeta | None = None) -> None:
        with needs("Packing passages", "parquet"):
            import pyarrow.parquet  # noqa: F401
        self.location, self._folder = str(folder), folder
        if meta is not None and not (folder / META).exists():
            folder.mkdir(parents=True, exist_ok=True)
            self._note(meta, {})
        try:
            noted = json.loads((folder / META).read_text("utf-8"))
            noted["meta"]["store"] = None
            self.meta, self._roots = IndexMeta(**noted["meta"]), dict(noted["roots"])
            is_known = noted["packed"] == FORMAT
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise LocationError(
                f"{folder} holds no packed passages: give a folder that 'slice-os pack' made."
            ) from exc
        if not is_known:
            raise LocationError(f"{folder} is of another version of slice-os: pack it again.")
        self.effort = Effort()

    def _note(self, meta: IndexMeta, roots: Mapping[str, str]) -> None:
        noted = {"packed": FORMAT, "meta": asdict(meta), "roots": dict(roots)}
        write_whole(self._folder / META, json.dumps(noted, indent=2))

    def remember(self, roots: Mapping[str, str]) -> None:
        """Note the folders under which files have their ids."""
        if self._roots != dict(roots):
            self._roots = dict(roots)
            self._note(self.meta, roots)

    def roots(self) -> dict[str, str]:
        """Return them."""
        return dict(self._roots)

    @cached_property
    def _known(self) -> sqlite3.Connection:
        """Where which document is; on disk, should it grow."""
        known = sqlite3.connect("", check_same_thread=False)
        known.execute(
            "CREATE TABLE known (id TEXT PRIMARY KEY, hash TEXT, source TEXT, file TEXT,"
            " first INTEGER, last INTEGER) WITHOUT ROWID"
        )
        for file in sorted(self._folder.glob("*.parquet")):
            for group, rows in _places(file):
                known.executemany(
                    "INSERT INTO known VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT DO UPDATE SET"
                    " hash = ?2, source = ?3, first = iif(file = ?4, first, ?5), file = ?4,"
                    " last = ?5",
                    ((*row, str(file), group) for row in rows),
                )
        return known

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield the ids and sources of all documents, in the order of the files."""
        yield from self._known.execute("SELECT id, source FROM known ORDER BY file, first, id")

    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        """Return what is known of some documents; their passages are not used again."""
        query = "SELECT id, hash FROM known WHERE id IN (SELECT value FROM json_each(?))"
        rows = self._known.execute(query, (json.dumps(documents),))
        return {id_: StoredDocument(known, Counter()) for id_, known in rows}

    def passages(self, *, documents: Sequence[str]) -> Iterator[StoredPassage]:
        """Yield the passages of some documents, of each in order."""
        for document in documents:
            query = "SELECT file, first, last FROM known WHERE id = ?"
            file, first, last = self._known.execute(query, (document,)).fetchone()
            for group in range(first, last + 1):
                for row in _rows(file, group):
                    if row["document"] == document:
                        yield _passage(row)

    def writer(
        self,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        partition: tuple[int, int] | None = None,
    ) -> PackedWriter:
        """Open the folder for writing; several may be."""
        return PackedWriter(self, self._folder)


def _places(file: Path) -> Iterator[tuple[int, dict[tuple[str, str, str], None]]]:
    """Yield the row groups of a file: id, hash and source of the documents in each.

    Raises:
        LocationError: it is damaged, or something else.
    """
    try:
        opened = _opened(str(file))
        names = [name for name, _ in _COLUMNS]
        opened.schema_arrow.empty_table().select(names)
        for group in range(opened.num_row_groups):
            table = opened.read_row_group(group, columns=names[:3])
            columns = (column.to_pylist() for column in table)
            yield group, dict.fromkeys(zip(*columns, strict=True))
    except (OSError, ValueError, KeyError) as exc:
        raise LocationError(
            f"{file} holds no packed passages ({exc}): move it away, and pack again."
        ) from exc


@lru_cache(maxsize=4)
def _opened(file: str) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(file)


@lru_cache(maxsize=2)
def _rows(file: str, group: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _opened(file).read_row_group(group).to_pylist()
    return rows


def _passage(row: Mapping[str, Any]) -> StoredPassage:
    place = (row["document"], row["passage"], row["start"], row["end"], row["text"], row["title"])
    packed = PackedPassage.from_bytes(row["words"])
    return StoredPassage(Passage(*place), json.loads(row["metadata"]), packed)


class PackedWriter(Writer):
    """Writes documents to a new file of a folder, and to the next after each commit."""

    def __init__(self, owner: PackedFolder, folder: Path) -> None:
        self._owner, self._folder = owner, folder
        self._seen = sqlite3.connect("")  # on disk, should it grow
        self._seen.execute("CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID")
        self._held: list[dict[str, Any]] = []
        self._document: Document | None = None
        self._begun = self._words = 0
        self._is_half_written = False
        self._file: Any = None
        self._path: Path | None = None

    def touch(self, document: str) -> bool:
        seen = self._seen.execute("INSERT OR IGNORE INTO seen VALUES (?)", (document,))
        return seen.rowcount == 1

    def begin(self, document: Document) -> bool:
        if not self.touch(document.id):
            return False
        self._document, self._begun, self._words = document, len(self._held), 0
        return True

    def put(self, passage: Passage, packed: PackedPassage) -> None:
        assert self._document is not None
        document = self._document
        self._words += packed.own_words(passage)
        values = (
            *(document.id, document.hash, document.source, passage.title),
            json.dumps(dict(document.metadata), ensure_ascii=False, default=str),
            *(passage.number, passage.start, passage.end, passage.text, packed.to_bytes()),
        )
        self._held.append(dict(zip(dict(_COLUMNS), values, strict=True)))
        if len(self._held) - self._begun >= _GROUP:  # a long one is not held whole
            self._write()
            self._begun, self._is_half_written = 0, True

    def keep(self, passage: Passage) -> None:
        raise AssertionError("nothing is kept, as `stored` names no passage")

    def finish(self) -> int:
        self._document, self._is_half_written = None, False
        if len(self._held) >= _GROUP:
            self._write()
        return self._words

    def _write(self) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _COLUMNS])
        if self._file is None:
            number = 1 + max(
                (int(path.name[:8]) for path in self._folder.glob("[0-9]" * 8 + "-*")), default=0
            )
            self._path = self._folder / f"{number:08d}-{uuid4().hex[:8]}.parquet"
            self._file = ParquetWriter(
                self._path.with_suffix(".part"), schema, compression="zstd", use_dictionary=False
            )
        table = pa.Table.from_pylist(self._held, schema)
        self._file.write_table(table, row_group_size=len(self._held))
        self._held.clear()

    def delete(self, documents: Sequence[str]) -> int:
        raise NotImplementedError("packed passages are only added to")

    def unseen(self) -> Iterator[tuple[str, str]]:
        raise NotImplementedError("packed passages are only added to")

    def remember(self, roots: Mapping[str, str]) -> None:
        self._owner.remember(roots)

    def commit(self) -> None:
        if self._document is not None:  # half of one is none
            del self._held[self._begun :]
        if self._held and not self._is_half_written:
            self._write()
        if self._file is not None:
            assert self._path is not None
            self._file.close()
            partial = self._path.with_suffix(".part")
            if self._is_half_written:  # the next run packs again what else is in it
                partial.unlink()
            else:
                partial.replace(self._path)
            self._file = None
        self._document, self._is_half_written = None, False

    def close(self, *, merge: bool = True) -> None:
        self.commit()
        self._seen.close()
