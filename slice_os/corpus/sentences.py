"""The sentence or turn that a span of a text stands in."""

from __future__ import annotations

import regex

from slice_os.corpus.flow import flow

CONTEXT = 160
"""Characters on either side of a span, at most."""
_SENTENCE_END = regex.compile(r"(?<=[.!?…。！？])\s+|\n+")


def sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """Return what stands before and after a span in the sentences or turns that it touches.

    Of each no more than CONTEXT characters; an ellipsis says where there would be more. The line
    ends of hard-wrapped prose end no sentence.
    """
    text = flow(text)
    first = max((m.end() for m in _SENTENCE_END.finditer(text, 0, start)), default=0)
    found = _SENTENCE_END.search(text, end)
    last = found.start() if found else len(text)
    lead = tail = ""
    if start - first > CONTEXT:
        first = text.find(" ", start - CONTEXT, start) + 1 or start - CONTEXT
        lead = "… "
    if last - end > CONTEXT:
        cut = text.rfind(" ", end, end + CONTEXT)
        last = cut if cut > 0 else end + CONTEXT
        tail = " …"
    return lead + text[first:start], text[end:last] + tail
