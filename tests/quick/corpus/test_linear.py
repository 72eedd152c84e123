"""No pattern takes much longer for a text that was made for it: twice the text, twice the time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import numpy as np
import pytest

from slice_os.corpus.formats import html, text
from slice_os.corpus.formats.pages import Line, running_text
from slice_os.corpus.rows import Fields, to_document
from slice_os.errors import QueryError
from slice_os.text import Wording, parse_query
from slice_os.text.filters import parse_filters
from slice_os.text.normal_form import aligned_normal_form
from slice_os.text.sentences import flow, sentence_around
from slice_os.text.splitting import sentence_ends, split
from slice_os.types import Document

SIZE = 100_000
BITS = [
    " ", "\t", "#", "# ", "a", "a-", "-", "=", ".", ". ", ")", "\"", "!) ", "1.", "(a.", "\n",
    "\n ", "\n- ", "<", "<p>", "</p>", "data:", "data:a/", "data:a;base64,", "---\n", "a: b\n",
    "*", "“", ",", "and ", "Mr. ", "a.b.", "中", "|", "<br", "<!--", "&", "---", "i",
    "<b>", "<div>", "<table><td>", "\" -", "-\"",
    "A ", "A b:", "1:23 ", "[1/", "12:34\n", "\u0301", "\u00ad", "\ufb01",
]  # fmt: skip


def attempted(said: str) -> None:
    with contextlib.suppress(QueryError):
        parse_filters(said)


def pages(said: str) -> object:
    lines = [Line(10, 700 - n, 10, part) for n, part in enumerate((said, said, "end"))]
    return running_text([lines, lines])


@pytest.mark.parametrize(
    "reads",
    [
        lambda said: text.parse_markdown(f"# {said}x".encode()),
        lambda said: text.parse_markdown(f"---\n{said}\n---\nx".encode()),
        lambda said: text.parse_rst(f"{said}\n{said}".encode()),
        lambda said: list(split(Document("a", f"x {said} y"))),
        lambda said: flow(f"x\n\n{said}\n\n{said}x\ny"),
        lambda said: sentence_around(f"x {said} y", 0, 1),
        lambda said: html.parse(f"<p>x {said}".encode()),
        lambda said: to_document({"text": f"<p>x</p> {said}", "at": said}, Fields(), "a"),
        parse_query,
        lambda said: Wording(f"x {said}").holds(said),
        pages,
        lambda said: sentence_ends(f"{said}x", np.array([1])),
        lambda said: aligned_normal_form(f"{said}\u00ad"),
        lambda said: attempted(f"{said}x"),
        lambda said: attempted(f"a{said}b"),
        lambda said: attempted(f"a{said}exists"),
    ],
)
def test_time_grows_as_texts_do(reads: Callable[[str], object]) -> None:
    slow = {}
    for bit in BITS:
        began = time.process_time()
        reads((bit * SIZE)[:SIZE])
        slow[bit] = time.process_time() - began
    assert max(slow.values()) < 2.5, sorted(slow.items(), key=lambda pair: -pair[1])[:5]
