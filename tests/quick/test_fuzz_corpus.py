"""Damaged files of every format end as documents or as counted rejects, never as a traceback.

`make fuzz` tries 10,000 of each.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import resource
import time
import zipfile
from email.message import EmailMessage
from pathlib import Path

import docx
import openpyxl
import pptx
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from pypdf import PdfWriter

from slice_os.corpus import read
from slice_os.text import split
from slice_os.types import Reject

pytestmark = pytest.mark.slow

ROWS = 40
CASES = int(os.environ.get("SLICE_OS_FUZZ", "50"))
KINDS = [
    ".txt", ".md", ".html", ".json", ".jsonl", ".csv", ".tsv", ".docx", ".pdf", ".xlsx", ".epub",
    ".odt", ".pptx", ".rtf", ".eml", ".mbox", ".vtt", ".srt", ".ipynb", ".rst", ".doc",
    ".parquet", ".feather",
]  # fmt: skip


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
    return plain | more(text, page)


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
        **columnar(text),
    }


def columnar(text: str) -> dict[str, bytes]:
    rows = [{"id": n, "text": f"{text} {n}", "m": {"x": [n]}} for n in range(ROWS)]
    table, as_parquet, as_arrow = pa.Table.from_pylist(rows), io.BytesIO(), io.BytesIO()
    parquet.write_table(table, as_parquet, row_group_size=ROWS // 2)
    feather.write_feather(table, as_arrow)
    return {".parquet": as_parquet.getvalue(), ".feather": as_arrow.getvalue()}


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


def damage_within(data: bytes, rng: random.Random) -> bytes:
    """Damage one file of a zip archive, so that the archive is whole."""
    packed, damaged = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    chosen = rng.choice(packed.namelist())
    with zipfile.ZipFile(damaged, "w", zipfile.ZIP_DEFLATED) as target:
        for name in packed.namelist():
            member = packed.read(name)
            target.writestr(name, damage(member, rng) if name == chosen and member else member)
    return damaged.getvalue()


def memory_used() -> int:
    """Return the most that this process, or one that it has seen end, has had, in KB."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in whose)


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files(tmp_path: Path, name: str) -> None:
    """Each takes less than 10 s and, with the process that parses it, 600 MB."""
    sources, rng = originals(), random.Random(name)
    used = memory_used()  # by other tests of the process, too
    whole = {".txt", ".md", ".html", ".pdf", ".docx", ".epub", ".odt", ".pptx", ".rtf", ".eml"}
    for number in range(CASES):
        of = name if rng.random() < 0.9 else rng.choice(KINDS)
        is_packed = sources[of].startswith(b"PK") and rng.random() < 0.5
        data = (damage_within if is_packed else damage)(sources[of], rng)
        path = tmp_path / f"{number}{name}"
        if rng.random() < 0.1:
            path, data = path.with_name(f"{path.name}.gz"), gzip.compress(data)
            data = data if rng.random() < 0.5 else damage(data, rng)
        path.write_bytes(data)
        before = time.process_time()
        rejects: list[Reject] = []
        corpus = read(path, on_reject=rejects.append)
        documents = list(corpus)
        assert time.process_time() - before < 10, number
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
        if name in whole:
            assert len(rejects) + len(documents) == 1, number
        path.unlink()
    assert memory_used() <= max(used, 600 << 10)


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
