"""PDF files of known text, as people lay them out."""

from __future__ import annotations

import random

from fpdf import FPDF

WORDS = [
    "customer", "agreement", "liability", "ship", "night", "licence", "refund", "office", "plan",
    "crew", "amount", "window", "money", "river", "letter", "garden", "winter", "market", "paper",
    "bridge", "history", "station", "valley", "music", "teacher", "doctor", "problem", "water",
    "forest", "notwithstanding", "representation", "responsibility", "international",
]  # fmt: skip


def sentence(rng: random.Random, least: int = 6, most: int = 24) -> str:
    """Return a sentence of words drawn at random, with a comma here and there."""
    words = rng.choices(WORDS, k=rng.randint(least, most))
    if rng.random() < 0.4:
        words[len(words) // 2] += ","
    return f"{' '.join(words).capitalize()}."


def prose(rng: random.Random, sentences: int) -> list[str]:
    """Return paragraphs of some sentences each."""
    return [
        " ".join(sentence(rng) for _ in range(rng.randint(3, 8))) for _ in range(sentences // 5)
    ]


def hyphenated(rng: random.Random, text: str, width: int) -> list[str]:
    """Return the lines of a paragraph; a third of the long words that do not fit are hyphenated."""
    lines, line = [], ""
    for word in text.split():
        room = width - len(line) - 1
        if len(word) <= room or not line:
            line = f"{line} {word}".strip()
        elif len(word) > 9 and room > 4 and rng.random() < 0.7:
            lines.append(f"{line} {word[: room - 1]}-")
            line = word[room - 1 :]
        else:
            lines.append(line)
            line = word
    return [*lines, line]


class _Paper(FPDF):
    title_line = "Proceedings of the Society for Tests"

    def header(self) -> None:
        self.set_font("Times", size=8)
        self.text(60, 10, self.title_line)

    def footer(self) -> None:
        self.set_font("Times", size=8)
        self.text(95, 290, f"Page {self.page_no()}")
        self.text(20, 290, "Draft, not for citation")


def columns_of(
    paragraphs: list[str], columns: int, rng: random.Random, *, rows: bool = False
) -> tuple[bytes, int]:
    """Return a PDF of paragraphs in columns, and its pages.

    Lines are hyphenated. With `rows` the file has the lines row by row, across the columns.
    """
    paper = _Paper(format="A4")
    paper.set_auto_page_break(False)
    width = {1: 95, 2: 46, 3: 30}[columns]
    lines: list[tuple[str, bool]] = []
    for paragraph in paragraphs:
        some = hyphenated(rng, paragraph, width)
        lines += [(line, number == 0) for number, line in enumerate(some)]
    height = 58
    places = [
        (n // height // columns, n // height % columns, n % height) for n in range(len(lines))
    ]
    order = list(zip(places, lines, strict=True))
    if rows:
        order.sort(key=lambda one: (one[0][0], one[0][2], one[0][1]))
    for (page, column, row), (line, first) in order:
        while paper.page_no() <= page:
            paper.add_page()
            paper.set_font("Times", size=10)
        paper.text(15 + column * 190 / columns + 4 * first, 22 + row * 4.5, line)
    return bytes(paper.output()), paper.page_no()
