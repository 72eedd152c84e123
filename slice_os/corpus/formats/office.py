"""Office files, by kreuzberg of the extra `documents`, and what it leaves out."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import replace
from typing import Any
from xml.parsers.expat import ExpatError

from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.formats.packed import OFFICE, OPEN, Markup, completed, lines, parts
from slice_os.errors import CorpusError, MissingExtraError

_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_PLAINER = (
    (
        re.compile(rb"<w:p?tab(?: w:[^>]*w:relativeTo[^>]*)?/>"),
        rb'<w:t xml:space="preserve"> </w:t>',
    ),
    (re.compile(rb"<w:noBreakHyphen/>"), rb"<w:t>-</w:t>"),
    (re.compile(rb"<w:moveFrom .*?</w:moveFrom>", re.S), b""),
)
_BESIDE = re.compile(rb'Target="\.\./((?:notesSlides|comments|charts|diagrams)/[^"]+\.xml)"')
_NOTE_MARK = re.compile(r"\[\^\d{1,5}\]:?")
_BROKEN = (zipfile.BadZipFile, ExpatError, ValueError, KeyError, NotImplementedError, EOFError)


def parse_docx(data: bytes) -> Parsed:
    """Return headers, the body with its notes, then what else there is; a paragraph a line."""
    try:
        plainer = _plainer(data)
    except _BROKEN as exc:
        raise CorpusError(f"is not a readable .docx: {exc or type(exc).__name__}") from exc
    found = _extracted(plainer, _WORD, ".docx")
    text = _NOTE_MARK.sub("", found.text)
    around = [
        _lines(data, ".docx", OFFICE, pattern)
        for pattern in (
            r"word/header\d*\.xml",
            r"word/(document|footnotes|endnotes|comments)\d*\.xml",
            r"word/(charts/chart|diagrams/data)\d*\.xml",
            r"word/footer\d*\.xml",
        )
    ]
    headers, body, drawn, footers = (completed(text, list(dict.fromkeys(one))) for one in around)
    joined = "\n".join([*headers, text, *body, *drawn, *footers])
    return Parsed(joined, found.title, author=found.author, date=found.date, says=True)


def _plainer(data: bytes) -> bytes:
    """Return a document without the marks at which kreuzberg joins words, or says them twice."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as plainer:
        for name, part in parts(data, r".*\.(?:xml|rels)"):
            for pattern, instead in _PLAINER if name.startswith("word/") else ():
                part = pattern.sub(instead, part)
            plainer.writestr(name, part)
    return file.getvalue()


def parse_pptx(data: bytes) -> Parsed:
    """Return the slides, each with its notes, comments, charts and diagrams; a paragraph a line."""
    try:
        files = dict(parts(data, r"ppt/.*\.(xml|rels)"))
        slides = [name for name in files if re.fullmatch(r"ppt/slides/slide\d+\.xml", name)]
        text: dict[str, list[str]] = {}
        for slide in slides:
            links = files.get(slide.replace("slides/", "slides/_rels/") + ".rels", b"")
            beside = [f"ppt/{found.decode()}" for found in _BESIDE.findall(links)]
            for name in (slide, *(one for one in beside if one in files and one not in text)):
                text[name] = lines(files[name], OFFICE)
    except _BROKEN as exc:
        raise CorpusError(f"is not a readable .pptx: {exc or type(exc).__name__}") from exc
    return _with_properties(data, [line for one in text.values() for line in (*one, "")])


def parse_open(data: bytes) -> Parsed:
    """Return the paragraphs of an OpenDocument text or presentation, a line each."""
    body = _lines(data, "OpenDocument file", OPEN, r"content\.xml")
    around = [*dict.fromkeys(_lines(data, "OpenDocument file", OPEN, r"styles\.xml"))]
    lacking = completed("\n".join(body), around)
    return _with_properties(data, [*body, *lacking])


def parse_rtf(data: bytes) -> Parsed:
    """Return the paragraphs of a Rich Text file."""
    found = _extracted(data, "application/rtf", ".rtf")
    return replace(found, text=_NOTE_MARK.sub("", found.text))


def parse_doc(data: bytes) -> Parsed:
    """Return the paragraphs of a file of Word before 2007."""
    return _extracted(data, "application/msword", ".doc")


def parse_ppt(data: bytes) -> Parsed:
    """Return the slides of a file of PowerPoint before 2007."""
    return _extracted(data, "application/vnd.ms-powerpoint", ".ppt")


def parse_msg(data: bytes) -> Parsed:
    """Return the head and the body of a message of Outlook."""
    return _extracted(data, "application/vnd.ms-outlook", ".msg")


def _extracted(data: bytes, kind: str, name: str) -> Parsed:
    try:
        import kreuzberg
    except ImportError as exc:
        raise MissingExtraError(f"Reading {name} files", "documents") from exc
    config = kreuzberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
    )
    try:
        found = kreuzberg.extract_bytes_sync(data, kind, config=config)
    except Exception as exc:  # broken files come up as any error there is
        raise CorpusError(f"is not a readable {name}: {exc or type(exc).__name__}") from exc
    said: dict[str, Any] = {key: value for key, value in dict(found.metadata).items() if value}
    title = said.get("title") or said.get("subject") or ""
    authors = said.get("authors") or [said.get("from_email") or ""]
    date = said.get("created_at") or ""
    return Parsed(found.content, str(title), author=", ".join(authors), date=str(date), says=True)


def _lines(data: bytes, name: str, markup: Markup, pattern: str) -> list[str]:
    """Return the lines of the parts that a pattern names, blank lines between parts."""
    found: list[str] = []
    try:
        for _, xml in parts(data, pattern):
            found += [*lines(xml, markup), ""]
    except _BROKEN as exc:
        raise CorpusError(f"is not a readable {name}: {exc or type(exc).__name__}") from exc
    return found


def _with_properties(data: bytes, text: list[str]) -> Parsed:
    """Return a text with the title, author and date that the file's properties say."""
    said: dict[str, str] = {}
    for _, xml in parts(data, r"docProps/core\.xml", r"meta\.xml"):
        for name in ("title", "creator", "created", "initial-creator", "creation-date"):
            found = re.search(rb"<(?:\w+:)?%s\b[^>]*>([^<]*)<" % name.encode(), xml)
            if found:
                said.setdefault(name, _unescaped(found[1]))
    return Parsed(
        "\n".join(text),
        said.get("title", ""),
        author=said.get("initial-creator") or said.get("creator", ""),
        date=said.get("creation-date") or said.get("created", ""),
        says=True,
    )


def _unescaped(value: bytes) -> str:
    from html import unescape

    return unescape(value.decode("utf-8", "replace")).strip()
