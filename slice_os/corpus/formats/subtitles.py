"""Subtitles, .srt and .vtt: a row is some whole sentences, with the time that they are said at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

from slice_os.corpus.encodings import open_text
from slice_os.corpus.formats.base import Row
from slice_os.corpus.limits import ROW_CHARACTERS
from slice_os.errors import CorpusError

_WORDS = 60
"""A row ends with the sentence in which it has that many words,"""
_LONGEST = 110
"""or with the cue in which it has these: what is said without full stops goes on for ever."""
_TIMES = re.compile(
    r"\s*((?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3})\s*-->\s*((?:\d+:)?\d{1,2}:\d{2}[.,]\d+)"
)
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_ENDED = re.compile(r"[.!?…。！？][\"'”’)\]»♪]*$")


class _Cue(NamedTuple):
    start: str
    end: str
    speaker: str
    text: str


def parse(stream: BinaryIO) -> Iterator[Row]:
    """Give rows of some sentences, a sentence or a speaker's turn a line."""
    with open_text(stream, newline=None) as text:
        number = 0
        for number, cues in enumerate(_blocks(_cues(text)), start=1):
            yield Row(number, _values(cues))
        if not number:
            raise CorpusError("has no cues with times: it is no file of subtitles")


def _cues(lines: Iterable[str]) -> Iterator[_Cue]:
    times: tuple[str, str] | None = None
    texts: list[str] = []
    for line in chain(lines, [""]):
        if len(line) > ROW_CHARACTERS >> 4:
            raise CorpusError("has a line too long for a subtitle")
        if timing := _TIMES.match(line):
            if texts and texts[-1].isdigit():  # the number of this cue: no blank line before it
                texts.pop()
            yield from _cue(times, texts)
            times, texts = (_time(timing[1]), _time(timing[2])), []
        elif line.strip():
            texts.append(line.strip())
        else:
            yield from _cue(times, texts)
            times, texts = None, []


def _cue(times: tuple[str, str] | None, texts: list[str]) -> Iterator[_Cue]:
    """Yield what each speaker of a cue says; nothing of a text without times."""
    if times is None:
        return
    speaker = ""
    for piece in re.split(r"(?=<v[\s.])", " ".join(texts)):
        if voice := _VOICE.match(piece):
            speaker = voice[1].strip()
        if text := " ".join(unescape(_TAG.sub("", piece)).split()):
            yield _Cue(*times, speaker, text)


def _time(text: str) -> str:
    """Return ``00:01:02.500``, which sorts as times do."""
    clock, _, rest = text.replace(",", ".").partition(".")
    hours, minutes, seconds = (["0", *clock.split(":")])[-3:]
    return f"{int(hours):02}:{int(minutes):02}:{int(seconds):02}.{rest[:3]:0<3}"


def _blocks(cues: Iterable[_Cue]) -> Iterator[list[_Cue]]:
    block: list[_Cue] = []
    words = 0
    for cue in cues:
        block.append(cue)
        words += len(cue.text.split())
        if words >= _LONGEST or (words >= _WORDS and _ENDED.search(cue.text)):
            yield block
            block, words = [], 0
    if block:
        yield block


def _values(cues: list[_Cue]) -> dict[str, Any]:
    lines: list[str] = []
    speaker = ""
    for cue in cues:
        name = f"{cue.speaker}: " if cue.speaker and cue.speaker != speaker else ""
        if lines and not name and not _ENDED.search(lines[-1]):
            lines[-1] += f" {cue.text}"
        elif not lines or lines[-1] != cue.text:  # captions of live speech come twice
            lines.append(name + cue.text)
        speaker = cue.speaker
    start, end = cues[0].start, cues[-1].end
    values = {"id": start, "text": "\n".join(lines), "start": start, "end": end}
    speakers = [*dict.fromkeys(cue.speaker for cue in cues if cue.speaker)]
    return {**values, "speakers": speakers} if speakers else values
