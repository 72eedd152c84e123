"""E-books: the chapters of an .epub are web pages in a zip file."""

from __future__ import annotations

import posixpath
import zipfile
from urllib.parse import unquote
from xml.etree import ElementTree

from slice_os.corpus.formats.base import Parsed, readable
from slice_os.corpus.formats.html import parse_whole_page
from slice_os.corpus.formats.packed import parts

_NAMES = {
    "c": "urn:oasis:names:tc:opendocument:xmlns:container",
    "o": "http://www.idpf.org/2007/opf",
    "d": "http://purl.org/dc/elements/1.1/",
}


def parse(data: bytes) -> Parsed:
    """Return the chapters in their order, blank lines between them."""
    with readable(".epub", (zipfile.BadZipFile, ElementTree.ParseError, KeyError, ValueError)):
        files = dict(parts(data, r".*\.(xml|opf|x?html?|htm)"))
        container = ElementTree.fromstring(files["META-INF/container.xml"])
        rootfile = container.find(".//c:rootfile", _NAMES)
        place = "" if rootfile is None else rootfile.get("full-path", "")
        book = ElementTree.fromstring(files[place])
    hrefs = {item.get("id"): item.get("href", "") for item in book.iterfind(".//o:item", _NAMES)}
    spine = [hrefs.get(item.get("idref"), "") for item in book.iterfind(".//o:itemref", _NAMES)]
    folder = posixpath.dirname(place)
    paths = [posixpath.normpath(posixpath.join(folder, unquote(href))) for href in spine if href]
    pages = [parse_whole_page(files[path]) for path in dict.fromkeys(paths) if path in files]
    title, author, date = (
        ", ".join(node.text or "" for node in book.iterfind(f".//d:{name}", _NAMES))
        for name in ("title", "creator", "date")
    )
    text = "\n\n".join(page.text for page in pages if page.text)
    broken = sum(page.broken for page in pages)
    return Parsed(text, title, broken, author, date, says=True)
