"""Damaged files of every format end as documents or as counted rejects, never as a traceback.

`make fuzz` tries ten times as many.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import zipfile
from email.message import EmailMessage
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from pypdf import PdfWriter

from slice_os.corpus import read
from slice_os.text import split
from slice_os.types import Reject

pytestmark = pytest.mark.slow

ROWS = 40
FILES = 80
CASES = int(os.environ.get("SLICE_OS_FUZZ", "1000"))


def originals() -> dict[str, bytes]:
    text = "Größe, “quotes” and plain words.\nA second line; it’s longer.\n" * 20
    page = "<title>T</title><body>" + "<p>Some <b>bold</b> text</p><br><pre>a\nb</pre>" * 20
    rows = "".join(
        json.dumps({"id": n, "text": f"row {n} é", "m": {"x": [n]}}, ensure_ascii=False) + "\n"
        for n in range(ROWS)
    )
    table = "id,text,n\n" + "".join(f'{n},"row {n}, é",{n}\n' for n in range(ROWS))
    word, pdf, sheet = io.BytesIO(), io.BytesIO(), io.BytesIO()
    book = openpyxl.Workbook()
    for line in table.splitlines():
        book.active.append(line.replace('"', "").split(",", 2))
    book.save(sheet)
    document = docx.Document()
    document.add_paragraph(text)
    document.add_table(2, 2)
    document.save(word)
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(pdf)
    plain = {
        ".txt": text.encode(),
        ".md": ("# Heading\n" + text).encode("cp1252"),
        ".html": page.encode("utf-16"),
        ".json": f"[{','.join(rows.splitlines())}]".encode(),
        ".jsonl": rows.encode(),
        ".csv": table.encode(),
        ".tsv": table.replace(",", "\t").encode("cp1252"),
        ".docx": word.getvalue(),
        ".pdf": pdf.getvalue(),
        ".xlsx": sheet.getvalue(),
    }
    plain |= more(text, page)
    return plain | {f"{name}.gz": gzip.compress(data) for name, data in plain.items()}


def more(text: str, page: str) -> dict[str, bytes]:
    """Return one of each other kind."""
    book, slides, letter = io.BytesIO(), io.BytesIO(), EmailMessage()
    with zipfile.ZipFile(book, "w") as packed:
        packed.writestr(
            "META-INF/container.xml",
            '<c xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfile full-path="b.opf"/></c>',
        )
        packed.writestr(
            "b.opf",
            '<p xmlns="http://www.idpf.org/2007/opf"><item id="a" href="a.xhtml"/>'
            '<itemref idref="a"/></p>',
        )
        packed.writestr("a.xhtml", page)
    odt = io.BytesIO()
    with zipfile.ZipFile(odt, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("content.xml", f'<o xmlns:text="t"><text:p>{text}</text:p></o>')
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = text
    deck.save(slides)
    letter["From"], letter["Subject"], letter["Date"] = "a@x", "Größe", "Mon, 1 Jan 2024 10:00:00"
    letter.set_content(text)
    letter.add_alternative(page, subtype="html")
    letter.add_attachment(text, filename="a.txt")
    cues = "".join(f"00:0{n}.000 --> 00:0{n}.900\n<v Ann>{text[:60]}\n\n" for n in range(9))
    cells = [{"cell_type": "code", "source": text, "outputs": [{"text": [text]}]}]
    return {
        ".epub": book.getvalue(),
        ".odt": odt.getvalue(),
        ".pptx": slides.getvalue(),
        ".rtf": rb"{\rtf1\ansi{\b bold}\par " + text.encode("ascii", "ignore") + b"}",
        ".eml": letter.as_bytes(),
        ".mbox": b"From a\n" + letter.as_bytes() + b"\n\nFrom b\n" + letter.as_bytes(),
        ".vtt": f"WEBVTT\n\n{cues}".encode(),
        ".srt": cues.encode("cp1252"),
        ".ipynb": json.dumps({"cells": cells}).encode(),
        ".rst": f"Title\n=====\n{text}".encode(),
        ".doc": bytes.fromhex("d0cf11e0a1b11ae1") + text.encode() * 3,
    }


def damage(data: bytes, rng: random.Random) -> bytes:
    kind = rng.randrange(5)
    place = rng.randrange(len(data))
    if kind == 0:
        return data[:place]
    if kind == 1:
        mutable = bytearray(data)
        for _ in range(rng.randrange(1, 30)):
            mutable[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(mutable)
    if kind == 2:
        return data[:place] + rng.randbytes(rng.randrange(1, 200)) + data[place:]
    if kind == 3:
        return data[place:] + data[:place]
    return data


@pytest.mark.parametrize("seed", range(-(-CASES // FILES)))
def test_damaged_files(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    sources = originals()
    names = list(sources)
    for number in range(FILES):
        data = damage(sources[rng.choice(names)], rng)
        (tmp_path / f"{number:02}{rng.choice(names)}").write_bytes(data)
    rejects: list[Reject] = []
    corpus = read(tmp_path, on_reject=rejects.append)
    documents = list(corpus)
    assert corpus.documents == len(documents)
    assert corpus.rejects == len(rejects)
    assert corpus.bytes_done == corpus.bytes_total
    for document in documents:
        assert document.text.strip()
        json.dumps([document.id, document.title, document.text, document.metadata]).encode()
        document.text.encode()
        for passage in split(document):
            assert document.text[passage.start : passage.end] == passage.text
    assert all(reject.reason for reject in rejects)
    whole = {".txt", ".md", ".html", ".pdf", ".docx", ".epub", ".odt", ".pptx", ".rtf", ".eml"}
    for path in tmp_path.iterdir():
        mine = [r for r in rejects if r.place.partition("#")[0] == str(path)]
        kept = [d for d in documents if d.id == f"{tmp_path.name}/{path.name}"]
        if path.suffixes[0] in whole:
            assert len(mine) + len(kept) == 1, path.name


@pytest.mark.parametrize("name", [".jsonl", ".csv", ".tsv"])
def test_every_row_is_accounted_for(tmp_path: Path, name: str) -> None:
    """Letters are damaged here, not the marks that divide a file into rows."""
    whole = originals()[name]
    letters = [n for n, byte in enumerate(whole) if chr(byte) in "rowé0123456789" and n > 20]
    for seed in range(20):
        rng, data = random.Random(seed), bytearray(whole)
        for place in rng.sample(letters, 12):
            data[place] = rng.choice(b"\xff\xfexyz")
        (tmp_path / f"a{name}").write_bytes(data)
        corpus = read(tmp_path)
        assert len(list(corpus)) + corpus.rejects == ROWS, seed
