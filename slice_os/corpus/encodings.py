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
from typing import BinaryIO, NamedTuple

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
_DECLARED_IN = 1024  # what HTML's standard looks at
_DECLARED = re.compile(
    rb"""<(?:meta\s[^>]{0,500}?charset|\?xml\s[^>]{0,200}?encoding)"""
    rb"""\s{0,20}=\s{0,20}["']?\s{0,20}([\w:.-]{1,40})""",
    re.I,
)
# What browsers take for these, as a superset, and Python knows by another name.
_WEB = {
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "utf-8": "utf-8-sig",
}
_CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
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


def decode(data: bytes) -> Decoded:
    """Return the text of `data`, which may declare its encoding as HTML and XML do."""
    encoding, guessed = encoding_of(data)
    text = data.decode(encoding, _MARK)
    broken = text.count(BROKEN)
    return Decoded(text.replace(BROKEN, "\ufffd"), broken, encoding if guessed else "")


def open_text(stream: BinaryIO | io.TextIOWrapper, *, newline: str | None) -> io.TextIOWrapper:
    """Return `stream` as text, decoded as it is read; broken places are `BROKEN`."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(newline=newline)
        return stream
    encoding, guessed = encoding_of(_prefix(stream))
    if guessed:
        _log.warning("%s: %s", getattr(stream, "name", "a file"), guess_note(encoding))
    stream.seek(0)
    return io.TextIOWrapper(stream, encoding=encoding, errors=_MARK, newline=newline)


def open_as(stream: BinaryIO, encoding: str) -> io.TextIOWrapper:
    """Return `stream` as text in an encoding that the user named, for `open_text`."""
    marked = _marked(stream.read(4))
    stream.seek(0)
    return io.TextIOWrapper(stream, encoding=marked or encoding, errors=_MARK)


def as_utf8(data: bytes, encoding: str) -> bytes:
    """Return a text in UTF-8, marked as such; bytes that were broken are, still."""
    text = data.decode(_marked(data) or encoding, _MARK)
    # BROKEN is what this handler writes as 0xFF, which UTF-8 never has.
    return codecs.BOM_UTF8 + text.encode("utf-8", "surrogateescape")


def guess_note(encoding: str) -> str:
    """Return what users are told of an encoding that was guessed."""
    return f"read as {encoding}, which is a guess: give --encoding if letters look wrong."


def check_encoding(name: str) -> str:
    """Return an encoding by the name that Python or the web has for it, or raise CorpusError."""
    label = webencodings.lookup(name)
    try:
        return codecs.lookup(_WEB.get(label.name, label.codec_info.name) if label else name).name
    except LookupError as exc:
        raise CorpusError(f"There is no encoding {name!r}: give one such as cp1252.") from exc


def encoding_of(data: bytes) -> tuple[str, bool]:
    """Return the encoding of `data`, of which the first MiB is read, and whether it is a guess."""
    if marked := _marked(data):
        return marked, False
    sample = data[:_SAMPLE]
    text = codecs.getincrementaldecoder("utf-8")(_MARK).decode(sample, len(sample) == len(data))
    broken = text.count(BROKEN)
    if 0 in sample[:_BINARY_SAMPLE]:
        if _is_wide(sample[:_BINARY_SAMPLE], broken > 0):
            return _guess(sample[: len(sample) // 4 * 4], _WIDE), False
        if _CONTROLS.search(sample[:_BINARY_SAMPLE]):
            raise CorpusError("looks binary")
        sample = sample.replace(b"\0", b" ")
    if (broken or sample.isascii()) and (declared := _declared(sample)):
        return declared, False
    # Other encodings hardly ever form a valid sequence, so a few of them outweigh broken bytes.
    if not broken or sum(character > "\x7f" for character in text) >= 2 * broken:
        return "utf-8-sig", False
    # Only lines that are not ASCII tell one encoding from another, and the detector looks at
    # samples; a few whole lines before them give it context.
    lines = sample.split(b"\n")
    head = [line for line in sample[:1024].split(b"\n")[:-1] if line.isascii()]
    return _guess(b"\n".join(head + [line for line in lines if not line.isascii()]), _NARROW), True


def _marked(data: bytes) -> str:
    """Return the encoding that a byte order mark tells, nothing if there is none."""
    return next((encoding for mark, encoding in _BOMS if data.startswith(mark)), "")


def _is_wide(sample: bytes, broken: bool) -> bool:
    """Tell whether the NULs of a sample are those of UTF-16 or UTF-32, which stand in their places.

    Others are a program's, at any place, and stand for blanks.
    """
    zeros = sorted(sample[place::4].count(0) / len(sample) * 4 for place in range(4))
    return zeros[0] * 10 <= zeros[-1] and (broken or zeros[-1] >= 0.2)


def _declared(sample: bytes) -> str:
    """Return the encoding that a text names, if it is one, and most of the text is of it."""
    declared = _DECLARED.search(sample[:_DECLARED_IN])
    label = webencodings.lookup(declared[1].decode("ascii", "replace")) if declared else None
    if label is None or label.name.startswith("utf-16"):  # in which this could not be read
        return ""
    encoding = str(_WEB.get(label.name, label.codec_info.name))
    broken = sample.decode(encoding, _MARK).count(BROKEN)
    return encoding if broken <= sum(byte > 127 for byte in sample) / 10 else ""


def _guess(sample: bytes, encodings: list[str]) -> str:
    from charset_normalizer import from_bytes

    matches = from_bytes(sample, cp_isolation=encodings)
    best = matches.best()
    if best is None or "\0" in str(best):
        raise CorpusError("looks binary")
    # Western texts are often as plausible in a sister of cp1252, which is far more common.
    for match in matches:
        close = match.chaos <= best.chaos + 0.1 and match.coherence >= best.coherence - 0.1
        if close and "cp1252" in match.could_be_from_charset:
            return "cp1252"
    return best.encoding


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
