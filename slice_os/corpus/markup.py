"""The text that a reader of HTML sees, a block a line, with blank lines around a heading."""

from __future__ import annotations

import re
from typing import Any

from selectolax.lexbor import LexborHTMLParser

_UNSEEN = frozenset(["head", "script", "style", "noscript", "template", "svg", "iframe", "object"])
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "caption",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "legend",
        "li",
        "main",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tr",
        "ul",
    ]
)
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_AROUND_ROLES = frozenset(["navigation", "search", "alertdialog", "menu", "menubar"])
_AROUND_NAMES = frozenset(
    [
        "nav",
        "navbar",
        "navigation",
        "breadcrumb",
        "breadcrumbs",
        "skip-link",
        "skiplink",
        "site-nav",
        "main-nav",
        "sidenav",
        "topnav",
        "site-menu",
        "main-menu",
        "nav-menu",
        "onetrust-consent-sdk",
    ]
)
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


def text_of_tree(tree: LexborHTMLParser, whole: bool) -> str:
    """Return the text of a page, without what stands around it unless it is to be `whole`."""
    # Each node is met once: trees may be very deep.
    if tree.body is None:
        return ""
    said: list[str] = []
    ends: list[tuple[Any, str]] = []  # the nodes that are open, and what ends them
    counts: list[int] = []  # the numbers of the open lists
    verbatim = 0
    node: Any = tree.body.child
    while node is not None or ends:
        if node is None:
            node, end = ends.pop()
            said.append(end)
            verbatim -= node.tag == "pre"
            if node.tag in ("ol", "ul"):
                counts.pop()
            node = node.next
            continue
        tag = node.tag or ""
        if tag == "-text":
            text = node.text_content or ""
            said.append(text.replace("\n", _EDGE) if verbatim else text)
        elif not tag.startswith("-") and tag not in _UNSEEN and not _is_left_out(node, tag, whole):
            if tag in ("ol", "ul"):
                counts.append(_first_number(node) if tag == "ol" else -1)
            edge = _EDGE if tag in _BLOCKS else " " if tag in ("td", "th") else ""
            said.append(edge)
            if tag in _HEADINGS:
                said.append(_HEADING)
            elif tag == "li" and counts and counts[-1] >= 0:
                said.append(f"{counts[-1]}. ")
                counts[-1] += 1
            verbatim += tag == "pre"
            ends.append((node, edge))
            node = node.child
            continue
        node = node.next
    lines = []
    for line in "".join(said).split(_EDGE):
        if shown := " ".join(line.split()):
            heading = "\n" * (_HEADING in line)
            lines.append(f"{heading}{shown}{heading}")
    return "\n".join(lines).strip("\n") or ("" if whole else text_of_tree(tree, whole=True))


def _first_number(node: Any) -> int:
    start = node.attributes.get("start") or "1"
    return int(start) if start.isdigit() and len(start) < 10 else 1


def _is_left_out(node: Any, tag: str, whole: bool) -> bool:
    """Tell whether a reader does not see an element, or would not miss it."""
    said = node.attributes
    if not said:
        return tag == "nav" and not whole
    if "hidden" in said or (said.get("style") and _HIDDEN.search(said["style"])):
        return True
    if tag == "dialog" and "open" not in said:
        return True
    if whole or tag in ("html", "body", "main", "article"):
        return False
    if tag == "nav" or said.get("role") in _AROUND_ROLES:
        return True
    names = [said.get(name) or "" for name in _NAMED_BY]
    if not _AROUND_NAMES.isdisjoint(f"{names[0]} {names[1]}".lower().split()):
        return True
    named = " ".join(names)
    return bool(_COOKIES.search(named) and _BANNER.search(named))
