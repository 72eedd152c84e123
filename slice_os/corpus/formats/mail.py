"""Messages, .eml, and folders of them, .mbox, by Python's own library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, cast

from slice_os.corpus.encodings import decode
from slice_os.corpus.formats import html
from slice_os.corpus.formats.base import Parsed, Row
from slice_os.corpus.limits import TEXT_BYTES, too_long
from slice_os.errors import CorpusError

_POLICY = policy.default.clone(raise_on_defect=False)
_ALWAYS = ("title", "text", "from", "date")
_DEEPEST = 8
_MOST_TAGS = 50_000
_MOST_BOUNDARIES = 100
_MOST_PARTS = 1000
_BOUNDARY = re.compile(rb"""boundary\s{0,9}=\s{0,9}["']?([^\s"';]{1,99})""", re.I)


def parse(data: bytes) -> Parsed:
    """Return a message's subject and text; the texts that it brings along stand after it."""
    said = _read(data)
    text = f"{said['title']}\n\n{said['text']}" if said["title"] else said["text"]
    about = {name: said[name] for name in ("to", "cc", "attachments") if said.get(name)}
    return Parsed(
        text, said["title"], author=said["from"], date=said["date"], says=True, metadata=about
    )


def parse_mbox(stream: BinaryIO) -> Iterator[Row]:
    """Give a row for each message of a folder."""
    number = 0
    for message in _messages(stream):
        number += 1
        if message is None:
            yield Row(number, {}, too_long("message"))
            continue
        try:
            said = _read(message)
            yield Row(
                number, {name: value for name, value in said.items() if value or name == "text"}
            )
        except CorpusError as exc:
            yield Row(number, {}, str(exc))


def _messages(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield messages, which begin with a line "From " after a blank one; None for one too long."""
    held: list[bytes] = []
    size, blank, begun = 0, True, False
    while line := stream.readline(TEXT_BYTES):
        if blank and line.startswith(b"From "):
            if begun:
                yield b"".join(held) if size <= TEXT_BYTES else None
            held, size, begun = [], 0, True
        elif not begun and line.strip():
            raise CorpusError("is no mbox file: it does not begin with a line 'From '")
        elif begun:
            size += len(line)
            if size <= TEXT_BYTES:
                held.append(re.sub(rb"^>(>*From )", rb"\1", line))
            else:
                held.clear()
        blank = not line.strip()
    if begun:
        yield b"".join(held) if size <= TEXT_BYTES else None


def _read(data: bytes) -> dict[str, Any]:
    """Return what a message says."""
    boundaries = {*_BOUNDARY.findall(data)}
    if len(boundaries) > _MOST_BOUNDARIES:
        raise CorpusError(f"holds more than {_MOST_BOUNDARIES} parts with parts")
    if sum(data.count(b"\n--" + one) for one in boundaries) > _MOST_PARTS:
        raise CorpusError(f"holds more than {_MOST_PARTS:,} parts")
    try:
        return _said(BytesParser(policy=_POLICY).parsebytes(data))
    except CorpusError:
        raise
    except Exception as exc:  # damaged headers come up as any error there is
        raise CorpusError(f"is not a readable message: {exc or type(exc).__name__}") from exc


def _said(message: EmailMessage) -> dict[str, Any]:
    if not message.keys():
        raise CorpusError("is no message: it has no headers")
    texts: list[str] = []
    files: list[str] = []
    _gather(message, texts, files, 0)
    said = {
        "id": _header(message, "message-id").strip("<> "),
        "title": _header(message, "subject"),
        "text": "\n\n".join(filter(None, texts)),
        "from": _header(message, "from"),
        "to": _header(message, "to"),
        "cc": _header(message, "cc"),
        "date": _date(_header(message, "date")),
        "attachments": files,
    }
    return {name: value for name, value in said.items() if value or name in _ALWAYS}


def _gather(message: EmailMessage, texts: list[str], files: list[str], depth: int) -> None:
    if depth > _DEEPEST:
        raise CorpusError(f"holds more than {_DEEPEST} messages in one another")
    if message.get_content_type() == "message/rfc822":
        for one in message.iter_parts():
            inner = cast(EmailMessage, one)
            texts.append(_header(inner, "subject"))
            _gather(inner, texts, files, depth + 1)
    elif message.get_content_type() == "multipart/alternative":
        kinds = {one.get_content_type(): one for one in message.iter_parts()}
        chosen = kinds.get("text/plain") or kinds.get("text/html")
        if chosen is not None and not _text(cast(EmailMessage, chosen)).strip():
            chosen = None
        for one in [chosen] if chosen is not None else kinds.values():
            _gather(cast(EmailMessage, one), texts, files, depth + 1)
    elif message.is_multipart():
        for one in message.iter_parts():
            _gather(cast(EmailMessage, one), texts, files, depth + 1)
    else:
        if name := message.get_filename():
            files.append(name)
        if message.get_content_maintype() == "text":
            texts.append(_text(message))


def _text(message: EmailMessage) -> str:
    """Return the text of a part without parts."""
    if message.get_content_maintype() != "text":
        return "\n".join(_text(cast(EmailMessage, one)) for one in message.iter_parts())
    data = cast(bytes, message.get_payload(decode=True) or b"")
    try:
        text = data.decode(message.get_content_charset() or "utf-8")
    except (LookupError, UnicodeDecodeError, ValueError):
        text = decode(data).text
    if message.get_content_type() == "text/html":
        if text.count("<") > _MOST_TAGS:
            raise CorpusError(f"holds more than {_MOST_TAGS:,} tags")
        return html.parse_whole_page(b"\xef\xbb\xbf" + text.encode("utf-8", "replace")).text
    return text.replace("\r\n", "\n").strip("\n")


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).split())


def _date(said: str) -> str:
    try:
        return parsedate_to_datetime(said).isoformat()
    except (TypeError, ValueError):
        return said
