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


def said_by(documents: list[Document]) -> Iterator[str]:
    """Yield the texts of a file's documents, and what its rows have beside them."""
    for number, one in enumerate(documents):
        yield one.text
        for name, value in one.metadata.items():
            if one.id != one.source and name not in _ABOUT:
                yield f"{name} {value}" if number == 0 else str(value)


def measure(path: Path) -> tuple[Counter[str], list[Reject], float]:
    """Return the words that are read of a file, what was rejected, and seconds."""
    rejects: list[Reject] = []
    began = time.perf_counter()
    documents = list(read(path, on_reject=rejects.append))
    if not documents and any("--text-field" in one.reason for one in rejects):
        documents = list(read(path, text_fields="*"))
    seconds = time.perf_counter() - began
    return words_of("\n".join(said_by(documents))), rejects, seconds


def main() -> None:
    """Print a table in Markdown, and the rejects."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", action="store_true", help="a line for each file, too")
    asked = parser.parse_args()
    read_words: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0])
    rejected: list[Reject] = []
    for path in sorted(asked.folder.rglob("*")):
        if path.name.endswith(_REFERENCE) or not path.is_file() or format_of(path.name) is None:
            continue
        found, rejects, seconds = measure(path)
        rejected += rejects
        reference = path.with_name(path.name + _REFERENCE)
        wanted = words_of(reference.read_text(encoding="utf-8")) if reference.exists() else None
        has, wants = sum((found & (wanted or found)).values()), sum((wanted or Counter()).values())
        if asked.files:
            share = f"{has / wants:.3f}" if wants else "-"
            print(f"{path.relative_to(asked.folder)}\t{share}\t{wants}\t{seconds:.2f} s")
        for kind in (path.suffix.lower(), "all"):
            total = read_words[kind]
            total[0] += 1
            total[1] += has if wanted is not None else 0
            total[2] += wants
            total[3] += seconds
    print("| format | files | words of the references | read | seconds |")
    print("|---|---:|---:|---:|---:|")
    for kind, (files, hits, words, seconds) in read_words.items():
        share = f"{hits / words:.3f}" if words else "-"
        print(f"| {kind} | {files:.0f} | {words:,.0f} | {share} | {seconds:.1f} |")
    for one in rejected:
        print(f"- {Path(one.place).relative_to(asked.folder)}: {one.reason}")


if __name__ == "__main__":
    main()
