"""Messages, .eml, and folders of them, .mbox, by Python's own library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, cast

from slice_os.corpus.encodings import decode
from slice_os.corpus.formats.base import Parsed, Row, readable
from slice_os.corpus.formats.html import parse_whole_page
from slice_os.corpus.limits import TEXT_BYTES, too_long
from slice_os.errors import CorpusError

_POLICY = policy.default.clone(raise_on_defect=False)
_DEEPEST = 8
_MOST_TAGS = 50_000
_MOST_BOUNDARIES = 100
_MOST_PARTS = 1000
_BOUNDARY = re.compile(rb"""boundary\s{0,9}=\s{0,9}["']?([^\s"';]{1,99})""", re.I)


def parse(data: bytes) -> Parsed:
    """Return a message's subject and text; the texts that it brings along stand after it."""
    fields = _fields(data)
    title = fields["title"]
    text = f"{title}\n\n{fields['text']}" if title else fields["text"]
    about = {name: fields[name] for name in ("to", "cc", "attachments") if fields[name]}
    return Parsed(text, title, 0, fields["from"], fields["date"], says=True, metadata=about)


def parse_mbox(stream: BinaryIO) -> Iterator[Row]:
    """Give a row for each message of a folder."""
    for number, message in enumerate(_messages(stream), start=1):
        try:
            if message is None:
                yield Row(number, {}, too_long("message"))
                continue
            fields = _fields(message).items()
            yield Row(number, {name: value for name, value in fields if value or name == "text"})
        except CorpusError as exc:
            yield Row(number, {}, str(exc))


def _messages(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield messages, which begin with a line "From " after a blank one; None for one too long."""
    if not stream.readline(TEXT_BYTES).startswith(b"From "):
        raise CorpusError("is no mbox file: it does not begin with a line 'From '")
    held = bytearray()
    blank = is_long = False
    while line := stream.readline(TEXT_BYTES):
        if blank and line.startswith(b"From "):
            yield None if is_long else bytes(held)
            held, is_long = bytearray(), False
        elif not is_long:
            held += re.sub(rb"^>(>*From )", rb"\1", line)
            is_long = len(held) > TEXT_BYTES
        blank = not line.strip()
    yield None if is_long else bytes(held)


def _fields(data: bytes) -> dict[str, Any]:
    """Return what a message says of itself, and its text."""
    boundaries = {*_BOUNDARY.findall(data)}
    if len(boundaries) > _MOST_BOUNDARIES:
        raise CorpusError(f"holds more than {_MOST_BOUNDARIES} parts with parts")
    if sum(data.count(b"\n--" + boundary) for boundary in boundaries) > _MOST_PARTS:
        raise CorpusError(f"holds more than {_MOST_PARTS:,} parts")
    with readable("message"):  # damaged headers come up as any error there is
        message = BytesParser(policy=_POLICY).parsebytes(data)
        if not message.keys():
            raise CorpusError("is no message: it has no headers")
        parts = list(_parts(message))
        date = _header(message, "date")
        with suppress(TypeError, ValueError):
            date = parsedate_to_datetime(date).isoformat()
        return {
            "id": _header(message, "message-id").strip("<> "),
            "title": _header(message, "subject"),
            "text": "\n\n".join(text for text, _ in parts if text),
            **{name: _header(message, name) for name in ("from", "to", "cc")},
            "date": date,
            "attachments": [name for _, name in parts if name],
        }


def _parts(message: EmailMessage, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the text and the file name of each part that is to be read."""
    if depth > _DEEPEST:
        raise CorpusError(f"holds more than {_DEEPEST} messages in one another")
    if not message.is_multipart():
        text = _text(message) if message.get_content_maintype() == "text" else ""
        yield text, message.get_filename() or ""
        return
    parts = [cast(EmailMessage, part) for part in message.iter_parts()]
    if message.get_content_type() == "message/rfc822":
        yield from ((_header(inner, "subject"), "") for inner in parts)
    elif message.get_content_type() == "multipart/alternative":
        kinds = {part.get_content_type(): part for part in parts}
        chosen = kinds.get("text/plain") or kinds.get("text/html")
        if chosen is not None and _text(chosen).strip():
            parts = [chosen]
    for part in parts:
        yield from _parts(part, depth + 1)


def _text(message: EmailMessage) -> str:
    """Return the text of a part without parts."""
    data = cast(bytes, message.get_payload(decode=True) or b"")
    try:
        text = data.decode(message.get_content_charset() or "utf-8")
    except (LookupError, UnicodeDecodeError, ValueError):
        text = decode(data).text
    if message.get_content_type() == "text/html":
        if text.count("<") > _MOST_TAGS:
            raise CorpusError(f"holds more than {_MOST_TAGS:,} tags")
        return parse_whole_page(b"\xef\xbb\xbf" + text.encode("utf-8", "replace")).text
    return text.replace("\r\n", "\n").strip("\n")


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).split())
