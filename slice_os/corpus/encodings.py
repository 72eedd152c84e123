"""Bytes -> text. UTF-8 is tried first, since it is nearly always right and checks itself.

Whatever is neither UTF-8 nor what it declares is guessed by charset-normalizer, which is said, and
bytes that do not belong to the encoding become `BROKEN` so that the caller can count them: no text
is lost silently.
"""

from __future__ import annotations

import codecs
import io
import logging
import re
import zlib
from typing import Any, BinaryIO, NamedTuple

import webencodings

from slice_os.errors import CorpusError

_log = logging.getLogger(__name__)

# No decoder gives out half a surrogate pair, so in decoded text this can be nothing else.
BROKEN = "\udcff"
_MARK = "slice-os-mark"
codecs.register_error(
    _MARK, lambda exc: (BROKEN, exc.end if isinstance(exc, UnicodeDecodeError) else 0)
)

_SAMPLE = 1 << 20
_BINARY_SAMPLE = 8000  # what git looks at
_MANY_ZEROS = 0.2  # of every second byte; in UTF-16 without a mark, Latin text has nearly all
_DECLARED_IN = 1024  # what HTML's standard looks at
_DECLARED = re.compile(
    rb"""<(?:meta\s[^>]{0,500}?charset|\?xml\s[^>]{0,200}?encoding)"""
    rb"""\s{0,20}=\s{0,20}["']?\s{0,20}([\w:.-]{1,40})""",
    re.I,
)
# What browsers take for these, as a superset, and Python knows by another name.
_WEB = {
    **{"shift_jis": "cp932", "euc-kr": "cp949", "gbk": "gb18030", "big5": "big5hkscs"},
    **{"utf-16le": "utf-8-sig", "utf-16be": "utf-8-sig", "utf-8": "utf-8-sig"},
}
_CONTROLS = bytes({*range(1, 32)} - {*b"\t\n\v\f\r\x1b"})
_BOMS = (  # UTF-32's starts with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE = ["utf_16_le", "utf_16_be", "utf_32_le", "utf_32_be"]
# The encodings that texts really come in. Left to all that Python knows, short texts are taken
# for Mac Icelandic or DOS pages.
_NARROW = [
    *(f"cp125{number}" for number in range(9)),
    *("iso8859_2", "koi8_r", "koi8_u", "cp866", "cp874"),
    *("cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949"),
]


class Decoded(NamedTuple):
    """A text; `broken` places in it became U+FFFD. `guess` is its encoding, if that is a guess."""

    text: str
    broken: int
    guess: str = ""


def decode(data: bytes, *, declares: bool = False) -> Decoded:
    """Return the text of `data`, which may declare its encoding as HTML does."""
    encoding, guessed = encoding_of(data, declares=declares)
    text = data.decode(encoding, _MARK)
    broken = text.count(BROKEN)
    return Decoded(text.replace(BROKEN, "\ufffd"), broken, encoding if guessed else "")


def open_text(stream: BinaryIO, *, newline: str | None) -> io.TextIOWrapper:
    """Return `stream` as text, decoded as it is read; broken places are `BROKEN`."""
    encoding, guessed = encoding_of(_prefix(stream))
    if guessed:
        _log.warning("%s: %s", getattr(stream, "name", "a file"), guess_note(encoding))
    stream.seek(0)
    return io.TextIOWrapper(stream, encoding=encoding, errors=_MARK, newline=newline)


def guess_note(encoding: str) -> str:
    """Return what users are told of an encoding that was guessed."""
    return f"read as {encoding}, which is a guess: give --encoding if letters look wrong."


def check_encoding(name: str) -> str:
    """Return an encoding by the name that Python or the web has for it, or raise CorpusError."""
    known = webencodings.lookup(name)
    if known is not None:
        return _python_name(known).replace("-sig", "")
    try:
        return codecs.lookup(name).name
    except LookupError as exc:
        raise CorpusError(f"There is no encoding {name!r}: give one such as cp1252.") from exc


def as_utf8(data: bytes, encoding: str) -> bytes:
    """Return a text in UTF-8, marked as such; bytes that were broken are, still."""
    text = data.decode(encoding, _MARK).removeprefix("\ufeff")
    # BROKEN is what this handler writes as 0xFF, which UTF-8 never has.
    return codecs.BOM_UTF8 + text.encode("utf-8", "surrogateescape")


class Recoded(io.RawIOBase):
    """A stream of text in some encoding as UTF-8; see `as_utf8`."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream, self._encoding = stream, encoding
        self.name = getattr(stream, "name", "")
        self._begin()

    def _begin(self) -> None:
        self._decoder = codecs.getincrementaldecoder(self._encoding)(_MARK)
        self._held, self._ended, self._first = codecs.BOM_UTF8, False, True

    def readable(self) -> bool:
        """Tell that it is."""
        return True

    def seekable(self) -> bool:
        """Tell that it is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go back to the beginning, the one place that can be found again."""
        if (offset, whence) != (0, io.SEEK_SET):
            raise io.UnsupportedOperation("seek")
        self._stream.seek(0)
        self._begin()
        return 0

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Read as much as a buffer holds."""
        while len(self._held) < len(buffer) and not self._ended:
            data = self._stream.read(1 << 16)
            self._ended = not data
            text = self._decoder.decode(data, final=self._ended)
            if self._first and text:
                text, self._first = text.removeprefix("\ufeff"), False
            self._held += text.encode("utf-8", "surrogateescape")
        size = min(len(buffer), len(self._held))
        buffer[:size], self._held = self._held[:size], self._held[size:]
        return size


def _prefix(stream: BinaryIO) -> bytes:
    data = b""
    while len(data) < _SAMPLE:
        try:
            part = stream.read(1 << 16)
        except (OSError, EOFError, zlib.error):
            if not data:
                raise
            break  # it is met again, and reported, after the rows before it
        if not part:
            break
        data += part
    return data


def encoding_of(data: bytes, *, declares: bool = False) -> tuple[str, bool]:
    """Return the encoding of `data`, and whether it is a guess.

    Only the first MiB is looked at. With `declares`, an encoding that the data names, as HTML
    does, is taken if it fits.
    """
    sample = data[:_SAMPLE]
    for bom, encoding in _BOMS:
        if sample.startswith(bom):
            return encoding, False
    decoder = codecs.getincrementaldecoder("utf-8")(_MARK)
    text = decoder.decode(sample, final=len(sample) == len(data))
    broken = text.count(BROKEN)
    if 0 in sample[:_BINARY_SAMPLE]:
        if _is_wide(sample[:_BINARY_SAMPLE], broken > 0):
            return _detect(sample[: len(sample) // 4 * 4], _WIDE), False
        if any(bytes([control]) in sample[:_BINARY_SAMPLE] for control in _CONTROLS):
            raise CorpusError("looks binary")
        sample = sample.replace(b"\0", b" ")
    declared = _declared(sample) if declares and (broken or sample.isascii()) else ""
    if declared:
        return declared, False
    if not broken:
        return "utf-8-sig", False
    # Other encodings hardly ever form a valid sequence, so a few of them outweigh broken bytes.
    valid = sum(1 for character in text if character > "\x7f") - broken
    if valid >= broken:
        return "utf-8-sig", False
    # Only lines that are not ASCII tell one encoding from another, and the detector looks at
    # samples. A few whole lines before them give it context, and a declaration as HTML has it.
    head = [line for line in sample[:1024].split(b"\n")[:-1] if line.isascii()]
    telling = [line for line in sample.split(b"\n") if not line.isascii()]
    return _detect(b"\n".join(head + telling), _NARROW), True


def _is_wide(sample: bytes, broken: bool) -> bool:
    """Tell whether the NULs of a sample are those of UTF-16 or UTF-32, which stand in their places.

    Others are a program's, at any place, and stand for blanks.
    """
    if len(sample) >= 8:
        zeros = sorted(sample[place::4].count(0) / len(sample[place::4]) for place in range(4))
        if zeros[2] > 0.9:  # UTF-32: two or three of four bytes
            return True
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    regular = min(even, odd) * 10 <= max(even, odd)
    return regular and (broken or max(even, odd) >= _MANY_ZEROS * len(sample) / 2)


def _python_name(known: Any) -> str:
    return str(_WEB.get(known.name, known.codec_info.name))


def _declared(sample: bytes) -> str:
    """Return the encoding that a page names, if it is one, and most of the page is of it."""
    found = _DECLARED.search(sample[:_DECLARED_IN])
    known = webencodings.lookup(found[1].decode("ascii", "replace")) if found else None
    if known is None:
        return ""
    encoding = _python_name(known)
    broken = sample.decode(encoding, _MARK).count(BROKEN)
    return encoding if broken <= sum(byte > 127 for byte in sample) / 10 else ""


def _detect(sample: bytes, encodings: list[str]) -> str:
    from charset_normalizer import from_bytes
    from charset_normalizer.utils import any_specified_encoding

    matches = from_bytes(sample, cp_isolation=encodings)
    best = matches.best()
    if best is None or "\0" in str(best):
        raise CorpusError("looks binary")
    declared = any_specified_encoding(sample)  # which the library itself takes for a hint only
    if declared in {match.encoding for match in matches}:
        return str(declared)
    # Western texts are often as plausible in a sister of cp1252, which is far more common.
    for match in matches:
        close = match.chaos <= best.chaos + 0.1 and match.coherence >= best.coherence - 0.1
        if close and "cp1252" in match.could_be_from_charset:
            return "cp1252"
    return best.encoding
