"""HTML: the text that a reader sees, a block a line, with blank lines around a heading."""

from __future__ import annotations

import re
from collections.abc import Sequence

from selectolax.lexbor import LexborHTMLParser

from slice_os.corpus.charsets import decode
from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.limits import check_html

_UNSEEN = ["head", "script", "style", "noscript", "template", "svg", "iframe", "object"]
_BLOCKS = (
    "address,article,aside,blockquote,caption,dd,details,dialog,div,dl,dt,fieldset,figcaption,"
    "figure,footer,form,h1,h2,h3,h4,h5,h6,header,hr,legend,li,main,nav,ol,option,p,section,"
    "summary,table,tr,ul"
)
# Pictures, which may be most of a page that was saved as one file.
_EMBEDDED = re.compile(rb"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]+")
# What pages call them, the most usual first: plain, Dublin Core, Open Graph.
_AUTHOR = ("author", "dc.creator", "dcterms.creator", "article:author")
_DATE = ("date", "dc.date", "dcterms.date", "dcterms.created", "article:published_time")
# Stands for a block's edge until the source's own line ends, which mean nothing, are gone.
_EDGE = "\u2029"
_HEADING = "\u2028"


def parse(data: bytes) -> Parsed:
    """Return the body's blocks as lines, and ``<title>``."""
    check_html(data := _EMBEDDED.sub(b"", data))
    source, broken = decode(data)
    tree = LexborHTMLParser(source.replace("\0", " ").replace(_EDGE, " ").replace(_HEADING, " "))
    title = tree.css_first("title")
    name = " ".join(title.text().split()) if title else ""
    author, date = _said(tree, _AUTHOR), _said(tree, _DATE)
    tree.strip_tags(_UNSEEN)
    body = tree.body
    if body is None:
        return Parsed("", name, broken)
    for node in body.css("br"):
        node.replace_with(_EDGE)
    for node in body.css("td,th"):
        node.insert_after(" ")
    for node in body.css(_BLOCKS):
        node.insert_before(_EDGE)
        node.insert_after(_EDGE)
    for node in body.css("h1,h2,h3,h4,h5,h6"):
        if node.text(strip=True):
            node.insert_before(_EDGE + _HEADING)
    for node in body.css("pre"):  # last: what stands in it has its edges by now
        node.replace_with(_EDGE + node.text().replace("\n", _EDGE) + _EDGE)
    lines = [
        " ".join(line.split()).join(["\n" * (_HEADING in line)] * 2)
        for line in body.text().split(_EDGE)
        if line.strip()
    ]
    return Parsed("\n".join(lines).strip("\n"), name, broken, author, date, says=True)


def _said(tree: LexborHTMLParser, names: Sequence[str]) -> str:
    """Return the first of some <meta> that holds something."""
    said: dict[str, str] = {}
    for node in tree.css("meta[content]"):
        name = node.attributes.get("name") or node.attributes.get("property") or ""
        said.setdefault(name.lower(), (node.attributes["content"] or "").strip())
    return next((said[name] for name in names if said.get(name)), "")
