"""What Office files say: zip files of XML, of which every paragraph is read.

No library reads all of them: those that there are leave out comments, charts, headers or text in
shapes. What they have in common is simple: a paragraph is an element, and so is a piece of text.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.parsers import expat

from slice_os.corpus.limits import UNPACKED_BYTES, megabytes
from slice_os.errors import CorpusError


class Markup(NamedTuple):
    """The local names of the elements that a kind of XML has."""

    paragraphs: frozenset[str]
    headings: frozenset[str]
    rows: frozenset[str]
    texts: frozenset[str]
    """Elements that hold text; all within paragraphs do if there are none."""
    left_out: frozenset[str]


OFFICE = Markup(
    paragraphs=frozenset(["p", "ser", "cat", "text", "pt"]),
    headings=frozenset(),
    rows=frozenset(["tr"]),
    texts=frozenset(["t", "v", "text"]),
    left_out=frozenset(
        ["del", "moveFrom", "Fallback", "instrText", "oMath", "oMathPara", "numRef"]
    ),
)
"""Office Open XML, of .docx and .pptx: what was deleted, and what stands there twice, is left."""
OPEN = Markup(
    paragraphs=frozenset(["p"]),
    headings=frozenset(["h"]),
    rows=frozenset(["table-row"]),
    texts=frozenset(),
    left_out=frozenset(["tracked-changes", "sequence-decls", "creator", "date", "note-citation"]),
)
"""OpenDocument, of .odt and .odp."""
_SPACES = {"tab": "\t", "br": " ", "cr": " ", "line-break": " ", "noBreakHyphen": "-"}
_TITLES = frozenset(["title", "ctrTitle"])


def parts(data: bytes, *patterns: str) -> Iterator[tuple[str, bytes]]:
    """Yield the parts of a zip file whose names match patterns, in the order of these.

    Raises:
        CorpusError: it unpacks to too much.
        zipfile.BadZipFile: it is no zip file.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        # What a zip file says of a part's size is what zipfile reads of it at most.
        if sum(part.file_size for part in packed.infolist()) > UNPACKED_BYTES:
            raise CorpusError(f"unpacks to more than {megabytes(UNPACKED_BYTES)}")
        for pattern in patterns:
            members = [name for name in packed.namelist() if re.fullmatch(pattern, name)]
            for name in sorted(members, key=_numbered):
                yield name, packed.read(name)


def _numbered(name: str) -> list[str]:
    return [piece.zfill(9) if piece.isdigit() else piece for piece in re.split(r"(\d+)", name)]


def lines(xml: bytes, markup: Markup) -> list[str]:
    """Return the paragraphs of a part, and the rows of its tables, a line each.

    Blank lines are around a heading.
    """
    reader = _Reader(markup)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.Parse(xml, True)
    return reader.lines


class _Reader:
    def __init__(self, markup: Markup) -> None:
        self._markup = markup
        self.lines: list[str] = []
        self._left_out = self._in_text = 0
        self._paragraphs: list[list[str]] = []
        self._rows: list[list[str]] = []
        self._is_title = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(" ")[2]
        if self._left_out or local in self._markup.left_out:
            self._left_out += 1
            return
        if local in self._markup.paragraphs or local in self._markup.headings:
            self._paragraphs.append([])
        if local in self._markup.texts:
            self._in_text += 1
        elif local in self._markup.rows:
            self._rows.append([])
        elif local in ("ph", "sp"):  # a placeholder of a shape, which begins with it
            self._is_title = attributes.get("type", "") in _TITLES
        elif self._paragraphs and local == "s":
            count = next((n for key, n in attributes.items() if key.endswith(" c")), "1")
            self._paragraphs[-1].append(" " * min(int(count), 100) if count.isdigit() else " ")
        elif self._paragraphs:
            self._paragraphs[-1].append(_SPACES.get(local, ""))

    def data(self, text: str) -> None:
        if self._paragraphs and not self._left_out and (self._in_text or not self._markup.texts):
            self._paragraphs[-1].append(text)

    def end(self, name: str) -> None:
        local = name.rpartition(" ")[2]
        is_heading = local in self._markup.headings
        if self._left_out:
            self._left_out -= 1
            return
        self._in_text -= local in self._markup.texts
        if is_heading or local in self._markup.paragraphs:
            line = " ".join("".join(self._paragraphs.pop()).split())
        elif local in self._markup.rows:
            line = " ".join(self._rows.pop())
        else:
            return
        if line and self._rows:
            self._rows[-1].append(line)
        elif line:
            self.lines += ["", line, ""] if is_heading or self._is_title else [line]


def completed(text: str, lines: Sequence[str]) -> list[str]:
    """Return those of some lines that a text does not say, however it is spaced."""
    letters, place, lacking = _letters(text), 0, []
    for line in lines:
        sought = _letters(line)
        at = letters.find(sought, place)
        if at < 0:
            at = letters.find(sought)
        if at < 0:
            lacking.append(line)
        else:
            place = at + len(sought)
    return lacking


def _letters(text: str) -> str:
    return "".join(re.findall(r"\w+", text))
