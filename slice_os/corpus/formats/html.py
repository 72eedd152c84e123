"""HTML: web pages, and what they say of themselves."""

from __future__ import annotations

import re

from slice_os.corpus.encodings import decode
from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.limits import check_html
from slice_os.corpus.markup import text_of_tree, tree_of

# Pictures, which may be most of a page that was saved as one file.
_EMBEDDED = re.compile(rb"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]+")
# What pages call them, the most usual first: plain, Dublin Core, Open Graph.
_AUTHOR = ("author", "dc.creator", "dcterms.creator", "article:author")
_DATE = ("date", "dc.date", "dcterms.date", "dcterms.created", "article:published_time")


def parse(data: bytes, *, whole: bool = False) -> Parsed:
    """Return the body's blocks as lines, and ``<title>``.

    What is hidden is left out, and so are navigation and what asks about cookies, unless the page
    is to be `whole`.
    """
    check_html(data := _EMBEDDED.sub(b"", data))
    source, broken, guess = decode(data)
    tree = tree_of(source)
    title = tree.css_first("title")
    about: dict[str, str] = {}
    for node in tree.css("meta[content]"):
        name = node.attributes.get("name") or node.attributes.get("property") or ""
        if value := (node.attributes["content"] or "").strip():
            about.setdefault(name.lower(), value)
    author, date = (next(filter(None, map(about.get, names)), "") for names in (_AUTHOR, _DATE))
    return Parsed(
        text_of_tree(tree, whole=whole),
        " ".join(title.text().split()) if title else "",
        broken,
        author,
        date,
        says=True,
        guess=guess,
    )


def parse_whole_page(data: bytes) -> Parsed:
    """Return all of the body's blocks that can be seen as lines, and ``<title>``."""
    return parse(data, whole=True)
