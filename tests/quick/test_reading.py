"""A document's text from its passages."""

from __future__ import annotations

from slice_os.engine.document_text import join
from slice_os.types import Passage

TEXT = "One two three four.\n\nFive six seven eight nine."


def passages(*places):
    return [Passage("d", n, a, b, TEXT[a:b]) for n, (a, b) in enumerate(places)]


def test_passages_may_share_words_and_leave_white_space():
    for places in (
        [(0, 19), (21, 47)],
        [(0, 26), (8, 47)],
        [(0, 19), (4, 13), (14, 30), (21, 47)],
        [(0, 47), (21, 30)],
    ):
        shown = join(passages(*places))
        assert (shown.start, shown.end) == (0, 47)
        assert shown.text == TEXT
    assert join(passages((4, 7), (8, 13))).text == "two\nthree"
