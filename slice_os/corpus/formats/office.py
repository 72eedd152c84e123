"""Office files, by kreuzberg of the extra `documents`, and what it leaves out."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import replace
from html import unescape
from typing import Any
from xml.parsers.expat import ExpatError

from slice_os.corpus.formats.base import Parsed, readable
from slice_os.corpus.formats.packed import OFFICE, OPEN, Markup, completed, lines, parts
from slice_os.errors import MissingExtraError

_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_PLAINER = (
    (
        re.compile(rb"<w:p?tab(?: w:[^>]*w:relativeTo[^>]*)?/>"),
        rb'<w:t xml:space="preserve"> </w:t>',
    ),
    (re.compile(rb"<w:noBreakHyphen/>"), rb"<w:t>-</w:t>"),
    (re.compile(rb"<w:moveFrom .*?</w:moveFrom>", re.S), b""),
)
_WORD_PARTS = (
    r"word/header\d*\.xml",
    r"word/(document|footnotes|endnotes|comments)\d*\.xml",
    r"word/(charts/chart|diagrams/data)\d*\.xml",
    r"word/footer\d*\.xml",
)
_BESIDE = re.compile(rb'Target="\.\./((?:notesSlides|comments|charts|diagrams)/[^"]+\.xml)"')
_NOTE_MARK = re.compile(r"\[\^\d{1,5}\]:?")
_BROKEN = (zipfile.BadZipFile, ExpatError, ValueError, KeyError, NotImplementedError, EOFError)


def parse_docx(data: bytes) -> Parsed:
    """Return headers, the body with its notes, then what else there is; a paragraph a line."""
    with readable(".docx", _BROKEN):
        plainer = _plainer(data)
        beside = [list(dict.fromkeys(_lines(data, OFFICE, pattern))) for pattern in _WORD_PARTS]
    parsed = _extracted(plainer, _WORD, ".docx")
    text = _NOTE_MARK.sub("", parsed.text)
    headers, body, drawn, footers = (completed(text, part) for part in beside)
    return replace(parsed, text="\n".join([*headers, text, *body, *drawn, *footers]))


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
    text: list[str] = []
    read: set[str] = set()
    with readable(".pptx", _BROKEN):
        files = dict(parts(data, r"ppt/.*\.(xml|rels)"))
        for slide in files:
            if re.fullmatch(r"ppt/slides/slide\d+\.xml", slide):
                links = files.get(slide.replace("slides/", "slides/_rels/") + ".rels", b"")
                beside = [f"ppt/{name.decode()}" for name in _BESIDE.findall(links)]
                for name in (slide, *beside):
                    if name in files and name not in read:
                        text += [*lines(files[name], OFFICE), ""]
                        read.add(name)
        return _with_properties(data, text)


def parse_open(data: bytes) -> Parsed:
    """Return the paragraphs of an OpenDocument text or presentation, a line each."""
    with readable("OpenDocument file", _BROKEN):
        body = _lines(data, OPEN, r"content\.xml")
        around = [*dict.fromkeys(_lines(data, OPEN, r"styles\.xml"))]
        return _with_properties(data, [*body, *completed("\n".join(body), around)])


def parse_rtf(data: bytes) -> Parsed:
    """Return the paragraphs of a Rich Text file."""
    parsed = _extracted(data, "application/rtf", ".rtf")
    return replace(parsed, text=_NOTE_MARK.sub("", parsed.text))


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
    with readable(name):
        extracted = kreuzberg.extract_bytes_sync(data, kind, config=config)
    about: dict[str, Any] = {key: value for key, value in dict(extracted.metadata).items() if value}
    title = about.get("title") or about.get("subject") or ""
    authors = about.get("authors") or [about.get("from_email") or ""]
    date = about.get("created_at") or ""
    return Parsed(extracted.content, str(title), 0, ", ".join(authors), str(date), says=True)


def _lines(data: bytes, markup: Markup, pattern: str) -> list[str]:
    """Return the lines of the parts that a pattern names, blank lines between parts."""
    return [line for _, xml in parts(data, pattern) for line in (*lines(xml, markup), "")]


def _with_properties(data: bytes, text: list[str]) -> Parsed:
    """Return a text with the title, author and date that the file's properties say."""
    about = dict.fromkeys(["title", "creator", "created", "initial-creator", "creation-date"], "")
    for _, xml in parts(data, r"docProps/core\.xml", r"meta\.xml"):
        for name in about:
            element = re.search(rb"<(?:\w+:)?%s\b[^>]*>([^<]*)<" % name.encode(), xml)
            if element and not about[name]:
                about[name] = unescape(element[1].decode("utf-8", "replace")).strip()
    author = about["initial-creator"] or about["creator"]
    date = about["creation-date"] or about["created"]
    return Parsed("\n".join(text), about["title"], 0, author, date, says=True)
