"""Whatever a file holds: it is rejected by name, the files after it are read, memory is bounded."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import docx
import pytest
from openpyxl import Workbook

from slice_os.corpus import read
from slice_os.types import Document, Reject

pytestmark = pytest.mark.slow

MB = 1 << 20
MOST = 600
FAR = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


def packed(*parts: bytes) -> bytes:
    file = io.BytesIO()
    with gzip.open(file, "wb", 1) as stream:
        for part in parts:
            stream.write(part)
    return file.getvalue()


def altered(data: bytes, name: str, find: bytes, put: bytes) -> bytes:
    """Return a zip file with something put after what is found in one of its parts."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new,
    ):
        for part in old.namelist():
            text = old.read(part)
            new.writestr(part, text.replace(find, find + put, 1) if part == name else text)
    return file.getvalue()


def word(body: bytes) -> bytes:
    file = io.BytesIO()
    docx.Document().save(file)
    return altered(file.getvalue(), "word/document.xml", b"<w:body>", body)


def workbook(row: bytes) -> bytes:
    file = io.BytesIO()
    book = Workbook()
    book.save(file)
    return altered(file.getvalue(), "xl/worksheets/sheet1.xml", b"<sheetData>", row)


def pdf(content: bytes) -> bytes:
    import zlib

    data = zlib.compress(content)
    fonts = b"<</Font<</F 5 0 R>>>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources%s>>" % fonts
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        page,
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(data), data),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = (
        b"xref\n0 6\n0000000000 65535 f \n%strailer\n<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
    )
    return out + end % (table, len(out))


def files() -> Iterator[tuple[str, bytes, str]]:
    """Yield names, data and what is said of it."""
    zeros = packed(*[b"\0" * MB] * 1000)
    yield "zeros.txt.gz", zeros, "holds more than 32 MB"
    yield "zeros.html.gz", zeros, "holds more than 32 MB"
    yield "zeros.docx", word(b"<w:p><w:r><w:t>" + b" " * 300 * MB), "unpacks to more than 128 MB"
    span = b'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2000000000"/></w:tcPr></w:tc></w:tr>'
    yield "span.docx", word(span + b"</w:tbl>"), "512 MB"
    yield "far.xlsx", workbook(b'<row r="1"><c r="A1"><v>1</v></c></row>%s' % FAR), "512 MB"
    beyond = FAR.replace(b"1048576", b"2000000000")
    yield "row.xlsx", workbook(b'<row r="1"><c r="A1"><v>1</v></c></row>%s' % beyond), "512 MB"
    yield "stream.pdf", pdf(b"0 " * 200 * MB), "512 MB"
    yield "word.txt", b"a" * 50 * MB, "holds more than 32 MB"
    yield "lines.txt", b"a\n" * 15 * MB, "1,000,000 lines"
    yield "wide.txt", ("ab " * 9 * MB + "\U0001f600").encode(), "takes more than 64 MB"
    yield "tags.html", b"<p>" * MB, "400,000 tags"
    yield "page.html", b"<p " + b"a " * 5 * MB + b">text", "8 MB of HTML"
    yield "line.jsonl.gz", packed(b'{"text": "', *[b"ab " * MB] * 50), "a line of more than 16 MB"
    yield "lists.jsonl", b'{"text": "a", "b": [' + b"[]," * 5 * MB + b"[]]}", "1,000,000 values"
    yield "lists.json", b'[{"text": "a", "b": [' + b"[]," * 5 * MB + b"[]]}]", "1,000,000 values"
    yield "deep.json", b"[" * 8 * MB, "not usable JSON"
    yield "quote.csv.gz", packed(b'text\n"', *[b"a\n" * MB] * 50), "a row of more than 16 MB"
    yield "columns.csv", b"a," * 5 * MB + b"b\n1\n", "10,000 columns"


CHILD = """
import json, sys
import slice_os
rejects = []
corpus = slice_os.read(sys.argv[1], on_reject=rejects.append)
report = slice_os.index(corpus, sys.argv[2])
said = [(reject.place, reject.reason) for reject in rejects]
# Not ru_maxrss, which begins with that of the process that started this one.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([report.documents, said, int(peak.split()[1]) >> 10]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_files_are_rejected_by_name_and_memory_is_bounded(tmp_path: Path) -> None:
    """What is just below the limits, too."""
    large, near = tmp_path / "large", tmp_path / "near"
    large.mkdir()
    near.mkdir()
    reasons = {}
    for name, data, reasons[name] in files():
        (large / name).write_bytes(data)
    (large / "zz.txt").write_text("The last file is read.")
    (near / "short.txt").write_bytes(b"\n" * 990_000 + b"words")
    (near / "tags.html").write_bytes(b"<p>" * 399_000 + b"words")
    (near / "page.html").write_bytes(b"<p " + b"a " * (4 * MB - 10) + b">words")
    marks = b"<w:p/>" * 90_000 + b"<w:p>" + b"<w:pPr/>" * 890_000 + b"</w:p>"
    (near / "marks.docx").write_bytes(word(marks))
    (near / "text.pdf").write_bytes(pdf(b"BT /F 12 Tf " + b"(a) Tj " * 20_000))
    (near / "zz.txt").write_text("The last file is read.")
    for corpus, documents in ((large, 1), (near, 5)):
        run = [sys.executable, "-c", CHILD, corpus, tmp_path / f"{corpus.name}.slice"]
        out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
        indexed, rejects, megabytes = json.loads(out)
        said = {Path(place.partition("#")[0]).name: reason for place, reason in rejects}
        assert indexed == documents, said
        assert megabytes <= MOST
        if corpus == large:
            assert len(rejects) == len(said)
            assert said.keys() == reasons.keys()
            for name, reason in reasons.items():
                assert reason in said[name], name


def test_a_long_line_costs_only_itself(tmp_path: Path) -> None:
    rows = b'{"text": "one"}\n{"text": "' + b"a " * 9 * MB + b'"}\n{"text": "three"}\n'
    (tmp_path / "a.jsonl").write_bytes(rows)
    rejects: list[Reject] = []
    corpus = read(tmp_path / "a.jsonl", on_reject=rejects.append)
    assert [(d.id, d.text) for d in corpus] == [("a.jsonl#1", "one"), ("a.jsonl#3", "three")]
    assert [r.place.rpartition("#")[2] for r in rejects] == ["2"]


def test_pictures_in_a_page_do_not_count(tmp_path: Path) -> None:
    picture = b'<img src="data:image/png;base64,' + b"iVBORw0KGgo" * MB + b'">'
    (tmp_path / "a.html").write_bytes(b"<p>Before" + picture + b"after")
    assert [d.text for d in read(tmp_path / "a.html")] == ["Beforeafter"]


def test_words_and_titles_have_a_longest(tmp_path: Path) -> None:
    import slice_os

    chinese = "\u4e2d\u6587" * 60_000
    documents = [
        Document("word", "before " + "a" * 100_001 + " after"),
        Document("title", "text", "t" * 10_001),
        Document("good", "before " + "a" * 2_000 + " after"),
        Document("unspaced", chinese[:1000]),
    ]
    rejects: list[Reject] = []
    report = slice_os.index(documents, tmp_path / "i.slice", on_reject=rejects.append)
    assert report.documents == 2
    assert [(r.place, "100,000" in r.reason or "10,000" in r.reason) for r in rejects] == [
        ("word", True),
        ("title", True),
    ]
