"""How many words of documents are read: words read / words of a reference, by format.

    python -m benchmarks.documents FOLDER

A file has its reference beside it, called like it with ``.reference.md`` at the end; files without
one are read, and what cannot be read is named. Words count as often as the reference has them, in
small letters, and marks of Markdown and HTML in it do not. Of rows, fields and their names count.
Where a table has no clear text column, which is a reject that says so, all of its columns are read.
"""

from __future__ import annotations

import argparse
import re
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from slice_os import read
from slice_os.corpus.formats import format_of
from slice_os.types import Document, Reject

_REFERENCE = ".reference.md"
_LEFT = re.compile(r"<!--.*?-->|\]\(data:[^)]*\)|</?[a-z][^>]*>", re.S)
_ABOUT = ("path", "folder", "name", "extension", "modified", "sheet")


def words_of(text: str) -> Counter[str]:
    """Return the words of a text and how often it has them."""
    plain = unicodedata.normalize("NFKC", _LEFT.sub(" ", text)).lower()
    return Counter(re.findall(r"[^\W_]+", plain))


def texts_of(documents: list[Document]) -> Iterator[str]:
    """Yield the texts of a file's documents, and what its rows have beside them."""
    for number, document in enumerate(documents):
        yield document.text
        for name, value in document.metadata.items():
            if document.id != document.source and name not in _ABOUT:
                yield f"{name} {value}" if number == 0 else str(value)


def measure(path: Path) -> tuple[Counter[str], list[Reject], float]:
    """Return the words that are read of a file, what was rejected, and seconds."""
    rejects: list[Reject] = []
    began = time.perf_counter()
    documents = list(read(path, on_reject=rejects.append))
    if not documents and any("--text-field" in reject.reason for reject in rejects):
        documents = list(read(path, text_fields="*"))
    return words_of("\n".join(texts_of(documents))), rejects, time.perf_counter() - began


def main() -> None:
    """Print a table in Markdown, and the rejects."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", action="store_true", help="a line for each file, too")
    arguments = parser.parse_args()
    totals: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0])
    rejected: list[Reject] = []
    for path in sorted(arguments.folder.rglob("*")):
        if path.name.endswith(_REFERENCE) or not path.is_file() or format_of(path.name) is None:
            continue
        words, rejects, seconds = measure(path)
        rejected += rejects
        reference: Counter[str] = Counter()
        with suppress(FileNotFoundError):
            reference = words_of(path.with_name(path.name + _REFERENCE).read_text("utf-8"))
        hits, size = sum((words & reference).values()), sum(reference.values())
        if arguments.files:
            share = f"{hits / size:.3f}" if size else "-"
            print(f"{path.relative_to(arguments.folder)}\t{share}\t{size}\t{seconds:.2f} s")
        for kind in (path.suffix.lower(), "all"):
            added = (1, hits, size, seconds)
            totals[kind] = [a + b for a, b in zip(totals[kind], added, strict=True)]
    print("| format | files | words of the references | read | seconds |")
    print("|---|---:|---:|---:|---:|")
    for kind, (files, *counts) in totals.items():
        share = f"{counts[0] / counts[1]:.3f}" if counts[1] else "-"
        print(f"| {kind} | {files:.0f} | {counts[1]:,.0f} | {share} | {counts[2]:.1f} |")
    for reject in rejected:
        print(f"- {Path(reject.place).relative_to(arguments.folder)}: {reject.reason}")


if __name__ == "__main__":
    main()
