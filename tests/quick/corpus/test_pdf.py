"""What pages say, however they are laid out."""

from __future__ import annotations

import os
import random
import re

import pytest
from fpdf import FPDF

from slice_os.text import split
from support.corpus import read_one
from support.pages import columns_of, prose

BOOKS = 3 * int(os.environ.get("SLICE_OS_FUZZ", "1000")) // 1000
"""Of each layout; with `make fuzz` they have more than a thousand pages."""


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_few_passages_begin_or_end_inside_a_sentence(tmp_path, columns, rows):
    pages = inside = count = 0
    for seed in range(BOOKS):
        rng = random.Random(seed)
        paragraphs = prose(rng, 1200)
        data, number = columns_of(paragraphs, columns, rng, rows=rows)
        pages += number
        document = read_one(tmp_path, "a.pdf", data)
        said = " ".join(document.text.split())
        wanted = " ".join(paragraphs)
        assert said.count("Proceedings of the Society for Tests") == 1
        assert not re.search(r"Page \d", said)
        sentences = {one.strip() for one in re.split(r"(?<=\.)\s", wanted)}
        found = {one.strip() for one in re.split(r"(?<=\.)\s", said)}
        assert len(sentences & found) > 0.99 * len(sentences)
        for passage in split(document):
            count += 1
            begins = re.match(r"\W*[A-Z]", passage.text)
            ends = re.search(r"[.!?]\W*$", passage.text)
            inside += not begins or not ends
    assert pages >= 10 * BOOKS
    assert inside <= 0.05 * count


def lines_of(*lines: tuple[int, str]) -> bytes:
    """Return a page of lines of some sizes; an empty one is a gap."""
    paper = FPDF()
    paper.add_page()
    y = 20.0
    for size, text in lines:
        paper.set_font("Times", size=size)
        paper.text(15, y, text)
        y += size / 2 if text else 6
    return bytes(paper.output())


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        (
            (
                "The long-term plan of the office is that the licensor pays for every long-",
                "term plan and for the cancel-",
                "lation of it, as was agreed by all of the parties on that day.",
            ),
            ["every long-term plan", "the cancellation of it"],
        ),
        (
            (
                "The price of it was high, and determining it was not easy. What was price-",
                "determining in the end was the office. Nobody was told of the cancel-",
                "lation, and nobody asked.",
            ),
            ["price-determining", "the cancellation"],
        ),
    ],
)
def test_a_hyphen_that_belongs_to_a_word_stays(tmp_path, lines, whole):
    document = read_one(tmp_path, "a.pdf", lines_of(*((10, line) for line in lines)))
    said = " ".join(document.text.split())
    assert all(words in said for words in whole)


def test_headings_lists_and_tables_keep_their_lines(tmp_path):
    body = "The licensor is liable for what it has done and for nothing else at all today."
    prose = [(16, "Limitation of Liability"), (10, ""), (10, body), (10, body)]
    table = [(10, ""), (10, "Fee 50"), (10, "Tax 9")]
    text = read_one(tmp_path, "a.pdf", lines_of(*prose, *table)).text
    assert text.startswith("Limitation of Liability\n\nThe licensor")
    assert text.endswith("Fee 50\nTax 9")
