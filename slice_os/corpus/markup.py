"""The text that a reader of HTML sees, a block a line, with blank lines around a heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser

_UNSEEN = frozenset(["head", "script", "style", "noscript", "template", "svg", "iframe", "object"])
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_BLOCKS = _HEADINGS | frozenset([
    "address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "dialog",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr",
    "legend", "li", "main", "nav", "ol", "option", "p", "pre", "section", "summary", "table",
    "tr", "ul",
])  # fmt: skip
_AROUND_ROLES = frozenset(["navigation", "search", "alertdialog", "menu", "menubar"])
_AROUND_NAMES = frozenset([
    "nav", "navbar", "navigation", "breadcrumb", "breadcrumbs", "skip-link", "skiplink",
    "site-nav", "main-nav", "sidenav", "topnav", "site-menu", "main-menu", "nav-menu",
    "onetrust-consent-sdk",
])  # fmt: skip
_HIDDEN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
_COOKIES = re.compile(r"cookie|consent|gdpr", re.I)
_BANNER = re.compile(r"banner|notice|popup|modal|overlay|dialog|message|toast|consent|bar\b", re.I)
_NAMED_BY = ("id", "class", "aria-label")
_MARKUP = re.compile(
    r"</(?:p|div|li|ul|ol|table|h[1-6]|blockquote|pre|span|a|strong|em|b|i)>|<br ?/?>"
)
_MOST_TAGS = 20_000
"""Of a cell; more, which may be nested in one another, take too long."""
# Stands for a block's edge until the source's own line ends, which mean nothing, are gone.
_EDGE = "\u2029"
_HEADING = "\u2028"
_LAYOUT = str.maketrans({"\0": " ", _EDGE: " ", _HEADING: " "})


def tree_of(source: str) -> LexborHTMLParser:
    """Return the tree of a page, or of a piece of one."""
    return LexborHTMLParser(source.translate(_LAYOUT))


def without_markup(text: str) -> str:
    """Return the text of a cell that holds HTML, as the editors of trackers and shops write it."""
    if not 0 < text.count("<") <= _MOST_TAGS or not _MARKUP.search(text):
        return text
    return text_of_tree(tree_of(text), whole=True)


def text_of_tree(tree: LexborHTMLParser, *, whole: bool) -> str:
    """Return the text of a page, without what stands around it unless it is to be `whole`."""
    pieces = "".join(_pieces(tree, whole)).split(_EDGE)
    lines = []
    for piece in pieces:
        if line := " ".join(piece.split()):
            blank = "\n" * (_HEADING in piece)
            lines.append(f"{blank}{line}{blank}")
    text = "\n".join(lines).strip("\n")
    return text if text or whole else text_of_tree(tree, whole=True)


def _pieces(tree: LexborHTMLParser, whole: bool) -> Iterator[str]:
    """Yield texts and the edges of blocks. Each node is met once: trees may be very deep."""
    opened: list[tuple[Any, str]] = []  # nodes, and the edge that ends them
    numbers: list[int | None] = []  # of the next item of the open lists
    verbatim = 0
    node: Any = tree.body.child if tree.body else None
    while node is not None or opened:
        if node is None:
            node, edge = opened.pop()
            yield edge
            verbatim -= node.tag == "pre"
            if node.tag in ("ol", "ul"):
                numbers.pop()
            node = node.next
            continue
        tag = node.tag or ""
        if tag == "-text":
            text = node.text_content or ""
            yield text.replace("\n", _EDGE) if verbatim else text
        elif not tag.startswith("-") and tag not in _UNSEEN and not _is_left_out(node, tag, whole):
            edge = _EDGE if tag in _BLOCKS else " " if tag in ("td", "th") else ""
            yield edge
            if tag in _HEADINGS:
                yield _HEADING
            elif tag in ("ol", "ul"):
                numbers.append(_first_number(node) if tag == "ol" else None)
            elif tag == "li" and numbers and (number := numbers[-1]) is not None:
                yield f"{number}. "
                numbers[-1] = number + 1
            verbatim += tag == "pre"
            opened.append((node, edge))
            node = node.child
            continue
        node = node.next


def _first_number(node: Any) -> int:
    start = node.attributes.get("start") or "1"
    return int(start) if start.isdigit() and len(start) < 10 else 1


def _is_left_out(node: Any, tag: str, whole: bool) -> bool:
    """Tell whether a reader does not see an element, or would not miss it."""
    attributes = node.attributes
    if "hidden" in attributes or (tag == "dialog" and "open" not in attributes):
        return True
    if _HIDDEN.search(attributes.get("style") or ""):
        return True
    if whole or tag in ("html", "body", "main", "article"):
        return False
    if tag == "nav" or attributes.get("role") in _AROUND_ROLES:
        return True
    identity, classes, label = (attributes.get(name) or "" for name in _NAMED_BY)
    if not _AROUND_NAMES.isdisjoint(f"{identity} {classes}".lower().split()):
        return True
    names = f"{identity} {classes} {label}"
    return bool(_COOKIES.search(names) and _BANNER.search(names))
