"""Bytes -> text. UTF-8 is tried first, since it is nearly always right and checks itself.

Whatever is not UTF-8 is detected by charset-normalizer, and bytes that do not belong to the
encoding become `BROKEN` so that the caller can count them: no text is lost silently.
"""

from __future__ import annotations

import codecs
import io
import zlib
from typing import BinaryIO

from slice_os.errors import CorpusError

# No decoder gives out half a surrogate pair, so in decoded text this can be nothing else.
BROKEN = "\udcff"
_MARK = "slice-os-mark"
codecs.register_error(
    _MARK, lambda exc: (BROKEN, exc.end if isinstance(exc, UnicodeDecodeError) else 0)
)

_SAMPLE = 1 << 20
_BINARY_SAMPLE = 8000  # what git looks at
_FEW_ZEROS = 0.05  # in UTF-16 without a mark, Latin text has 10 times as many
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


def decode(data: bytes) -> tuple[str, int]:
    """Return the text of `data` and how many broken places in it became U+FFFD."""
    text = data.decode(encoding_of(data), _MARK)
    broken = text.count(BROKEN)
    return text.replace(BROKEN, "\ufffd"), broken


def open_text(stream: BinaryIO, *, newline: str | None) -> io.TextIOWrapper:
    """Return `stream` as text, decoded as it is read; broken places are `BROKEN`."""
    encoding = encoding_of(_prefix(stream))
    stream.seek(0)
    return io.TextIOWrapper(stream, encoding=encoding, errors=_MARK, newline=newline)


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


def encoding_of(data: bytes) -> str:
    """Return the encoding of `data`, of which only the first MiB is looked at."""
    sample = data[:_SAMPLE]
    for bom, encoding in _BOMS:
        if sample.startswith(bom):
            return encoding
    decoder = codecs.getincrementaldecoder("utf-8")(_MARK)
    text = decoder.decode(sample, final=len(sample) == len(data))
    broken = text.count(BROKEN)
    zeros = sample[:_BINARY_SAMPLE].count(0)
    if zeros and (broken or zeros > _FEW_ZEROS * len(sample[:_BINARY_SAMPLE])):
        return _detect(sample[: len(sample) // 4 * 4], _WIDE)
    if not broken:
        return "utf-8-sig"
    # Other encodings hardly ever form a valid sequence, so a few of them outweigh broken bytes.
    valid = sum(1 for character in text if character > "\x7f") - broken
    if valid >= broken:
        return "utf-8-sig"
    # Only lines that are not ASCII tell one encoding from another, and the detector looks at
    # samples. A few whole lines before them give it context, and a declaration as HTML has it.
    head = [line for line in sample[:1024].split(b"\n")[:-1] if line.isascii()]
    telling = [line for line in sample.split(b"\n") if not line.isascii()]
    return _detect(b"\n".join(head + telling), _NARROW)


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
