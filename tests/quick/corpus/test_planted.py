"""Phrases across the places where a text is cut are found whole, and once, in every format."""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import random
import re
from collections import Counter

import docx
import numpy as np
import pytest

from slice_os.corpus import read
from slice_os.spans import own_norms
from slice_os.text import split
from slice_os.types import Document, Passage, Words
from support.pages import columns_of, sentence

PLANTED = 500
FORMATS = [".txt", ".md", ".html", ".jsonl", ".csv", ".tsv", ".docx", ".pdf"]


def planted(seed: int) -> tuple[list[str], list[str]]:
    """Return paragraphs, and six-word phrases that stand in them where passages end."""
    rng = random.Random(seed)
    paragraphs = [
        " ".join(sentence(rng, 6, 24) if rng.random() < 0.3 else sentence(rng, 100, 300)
                 for _ in range(rng.randint(1, 4)))
        for _ in range(140)
    ]  # fmt: skip
    phrases = []
    words = [paragraph.split() for paragraph in paragraphs]
    for own in words:
        at, cuts = 0, set(range(110, len(own), 110))
        for passage in split(Document("d", " ".join(own))):
            at += len(passage.text[passage.before :].split())
            cuts |= {at}
        for cut in sorted(cuts):
            first = cut - rng.randint(1, 5)
            if 0 < first < len(own) - 7 and not re.search(
                r"[.]|planted", " ".join(own[first - 1 : first + 6])
            ):
                number = "".join("klmnopqrst"[int(digit)] for digit in str(len(phrases)))
                phrase = [f"planted{number}{name}" for name in "abcdef"]
                own[first : first + 6] = phrase
                phrases.append(" ".join(phrase))
    return [" ".join(own) for own in words], phrases


def write(path, paragraphs: list[str], rng: random.Random) -> None:
    kind = path.name.removesuffix(".gz")[1:].rpartition(".")[2]
    text = "\r\n\r\n".join(paragraphs)
    if kind == "html":
        data = "<body>" + "".join(f"<p>{html.escape(one)}</p>" for one in paragraphs)
        data = data.encode()
    elif kind == "jsonl":
        data = "".join(json.dumps({"text": one}) + "\n" for one in paragraphs).encode()
    elif kind in ("csv", "tsv"):
        stream = io.StringIO()
        table = csv.writer(stream, delimiter="," if kind == "csv" else "\t")
        table.writerows([["id", "text"], *enumerate(paragraphs)])
        data = stream.getvalue().encode()
    elif kind == "docx":
        stream = io.BytesIO()
        document = docx.Document()
        for one in paragraphs:
            document.add_paragraph(one)
        document.save(stream)
        data = stream.getvalue()
    elif kind == "pdf":
        data, _ = columns_of(paragraphs, 2, rng)
    else:
        data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def found(passage: Passage) -> list[str]:
    """Return the six-word spans that are a passage's own."""
    bounds = np.array([m.span() for m in re.finditer(r"\S+", passage.text)], np.int32)
    words = Words(bounds[:, 0], bounds[:, 1], np.zeros((len(bounds), 1), np.float32))
    own = own_norms(np.ones((20, len(bounds)), np.float32), words, passage)
    texts = passage.text.split()
    return [
        " ".join(texts[n : n + 6]).strip(",.")
        for n in np.flatnonzero(own[5]).tolist()
        if n + 6 <= len(texts)
    ]


@pytest.mark.parametrize("ending", [*FORMATS, ".txt.gz", ".jsonl.gz"])
def test_phrases_across_cuts_are_whole_in_one_passage(tmp_path, ending):
    paragraphs, phrases = planted(1)
    assert len(phrases) >= PLANTED
    write(tmp_path / f"corpus{ending}", paragraphs, random.Random(2))
    rejects: list[object] = []
    corpus = read(tmp_path / f"corpus{ending}", on_reject=rejects.append)
    spans = Counter(span for d in corpus for p in split(d) for span in found(p))
    assert not rejects
    assert {phrase: spans[phrase] for phrase in phrases} == dict.fromkeys(phrases, 1)
