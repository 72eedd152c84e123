"""E-books: the chapters of an .epub are web pages in a zip file."""

from __future__ import annotations

import posixpath
import zipfile
from urllib.parse import unquote
from xml.etree import ElementTree

from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.formats.html import parse_whole_page
from slice_os.corpus.formats.packed import parts
from slice_os.errors import CorpusError

_NAMES = {
    "c": "urn:oasis:names:tc:opendocument:xmlns:container",
    "o": "http://www.idpf.org/2007/opf",
    "d": "http://purl.org/dc/elements/1.1/",
}


def parse(data: bytes) -> Parsed:
    """Return the chapters in their order, blank lines between them."""
    try:
        files = dict(parts(data, r".*\.(xml|opf|x?html?|htm)"))
        inside = ElementTree.fromstring(files["META-INF/container.xml"])
        rootfile = inside.find(".//c:rootfile", _NAMES)
        place = "" if rootfile is None else rootfile.get("full-path", "")
        book = ElementTree.fromstring(files[place])
    except (zipfile.BadZipFile, ElementTree.ParseError, KeyError, ValueError) as exc:
        raise CorpusError(f"is not a readable .epub: {exc or type(exc).__name__}") from exc
    named = {one.get("id"): one.get("href", "") for one in book.iterfind(".//o:item", _NAMES)}
    spine = [named.get(one.get("idref"), "") for one in book.iterfind(".//o:itemref", _NAMES)]
    folder = posixpath.dirname(place)
    paths = [posixpath.normpath(posixpath.join(folder, unquote(href))) for href in spine if href]
    pages = [parse_whole_page(files[path]) for path in dict.fromkeys(paths) if path in files]

    def said(name: str) -> str:
        return ", ".join(one.text or "" for one in book.iterfind(f".//d:{name}", _NAMES))

    return Parsed(
        "\n\n".join(page.text for page in pages if page.text),
        said("title"),
        sum(page.broken for page in pages),
        said("creator"),
        said("date"),
        says=True,
    )
