from __future__ import annotations

import gzip
import io
import json
import re
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import docx
import pytest
from fpdf import FPDF

import slice_os
from slice_os.corpus import parse_process as apart
from slice_os.corpus import read
from slice_os.corpus.formats import FORMATS, Parsed, Row, Rows, Whole
from slice_os.text import split
from slice_os.types import Reject
from support.corpus import read_file, read_one


def make_pdf(title: str = "", password: str = "", text: str = "The quick brown fox") -> bytes:
    paper = FPDF()
    paper.add_page()
    paper.set_font("Times", size=24)
    paper.text(20, 20, text)
    if title:
        paper.set_title(title)
        paper.set_author("F. Ox")
        paper.set_creation_date(datetime(2024, 5, 1, 12, tzinfo=timezone.utc))
    if password:
        paper.set_encryption("owner", password)
    return bytes(paper.output())


def make_docx() -> bytes:
    document = docx.Document()
    document.core_properties.title = "A report"
    document.add_paragraph("First paragraph.")
    table = document.add_table(2, 2)
    for number, cell in enumerate(table._cells):
        cell.text = f"cell {number}"
    table.cell(1, 0).merge(table.cell(1, 1))
    document.add_paragraph("Last paragraph.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


CODE = "```\n# code\n```\n## The *title* ##\ntext"


@pytest.mark.parametrize("squeeze", [False, True])
@pytest.mark.parametrize(
    ("name", "data", "text", "title"),
    [
        ("a.txt", b"line one\r\nline two\rthree\0four", "line one \nline two\nthree four", ""),
        ("a.TXT", b"upper case", "upper case", ""),
        ("a.md", CODE.encode(), CODE, "The *title*"),
        ("a.md", b"no heading", "no heading", ""),
        (
            "a.html",
            b"<title>A &amp; B</title><script>x()</script><style>p{}</style><div><p>One <b>bo</b>ld"
            b"\nline<br>two</p>tail</div><ul><li>a<li>b</ul><table><tr><td>1<td>2</table>"
            b"<pre>x\n  y<br>z<div>q</div><table><tr><td>3<td>4</table></pre>",
            "One bold line\ntwo\ntail\na\nb\n1 2\nx\ny\nz\nq\n3 4",
            "A & B",
        ),
        ("a.htm", b"just text", "just text", ""),
        ("a.pdf", make_pdf("A fox"), "The quick brown fox", "A fox"),
        (
            "a.docx",
            make_docx(),
            "First paragraph.\n\ncell 0 cell 1\ncell 2 cell 3 cell 2 cell 3\n\nLast paragraph.",
            "A report",
        ),
    ],
)
def test_whole_files(
    tmp_path: Path, name: str, data: bytes, text: str, title: str, squeeze: bool
) -> None:
    if squeeze:
        name, data = name + ".gz", gzip.compress(data)
    documents, rejects = read_file(tmp_path, name, data)
    assert not rejects
    (found,) = documents
    assert (found.id, found.text, found.title) == (name, text, title)
    about = {name: found.metadata.get(name) for name in ("path", "folder", "name")}
    assert about == {"path": name, "folder": "", "name": name}
    assert found.metadata["extension"] == name.lower().removesuffix(".gz")[2:]
    modified = (tmp_path / name).stat().st_mtime
    assert found.metadata["modified"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(modified))
    said = found.metadata.get("title", "")
    assert said == ("" if name.lower().startswith(("a.txt", "a.md")) else title)


def test_encrypted_and_scanned_pdfs_say_so(tmp_path: Path) -> None:
    assert "encrypted" in read_file(tmp_path, "a.pdf", make_pdf(password="x"))[1][0].reason
    assert "OCR" in read_file(tmp_path, "b.pdf", make_pdf(text=" "))[1][0].reason


@pytest.mark.parametrize("name", ["a.pdf", "a.docx"])
def test_broken_documents_are_rejects_and_silent(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = make_pdf() if name == "a.pdf" else make_docx()
    documents, rejects = read_file(tmp_path, name, whole[: len(whole) // 3])
    assert documents == []
    assert "not a readable" in rejects[0].reason
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "module"),
    [("a.pdf", "pypdfium2"), ("a.rtf", "kreuzberg"), ("a.xlsx", "python_calamine")],
)
def test_a_missing_extra_costs_only_its_files(
    tmp_path: Path, name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The module is looked for in another process, whose first folder of modules is this one.
    (tmp_path / "modules").mkdir()
    (tmp_path / f"modules/{module}.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setattr(apart, "_idle", [])
    (tmp_path / name).write_bytes(b"anything")
    (tmp_path / "b.txt").write_text("kept")
    rejects: list[Reject] = []
    assert [d.text for d in read(tmp_path, on_reject=rejects.append)] == ["kept"]
    assert "pip install 'slice-os[documents]'" in rejects[0].reason
    apart._close_idle()


def test_empty_and_binary_files_are_rejects(tmp_path: Path) -> None:
    assert read_file(tmp_path, "a.txt", b" \n\t")[1] == [Reject(str(tmp_path / "a.txt"), "no text")]
    assert (
        read_file(tmp_path, "b.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\2\0")[1][0].reason
        == "looks binary"
    )


def test_a_damaged_gz_is_a_reject(tmp_path: Path) -> None:
    whole = gzip.compress(b"some text " * 1000)
    for name, data in [("a.txt.gz", whole[:30]), ("b.txt.gz", b"not gzip")]:
        documents, rejects = read_file(tmp_path, name, data)
        assert documents == []
        assert "damaged" in rejects[0].reason


def test_headings_of_a_file_go_with_what_follows_them(tmp_path: Path) -> None:
    body = "The licensor is liable for what it has done, and for nothing else. " * 8
    titles = ["Limitation of Liability", "What is covered?", "Fees and taxes"]
    page = "".join(f"<h2>{title}</h2><p>{body}</p>" for title in titles)
    (tmp_path / "a.html").write_text(f"<body>{page}</body>")
    document = docx.Document()
    for title in titles:
        document.add_heading(title, 2)
        document.add_paragraph(body)
    document.save(str(tmp_path / "b.docx"))
    (tmp_path / "c.md").write_text("".join(f"## {title}\n\n{body}\n\n" for title in titles))
    (tmp_path / "d.txt").write_text("".join(f"{title}\n\n{body}\n\n" for title in titles))
    for found in read(tmp_path):
        passages = [passage.text for passage in split(found)]
        assert len(passages) == 3, found.id
        for title, text in zip(titles, passages, strict=True):
            assert re.match(rf"(## )?{re.escape(title)}\s+The licensor", text)


def test_offsets_are_those_of_the_file(tmp_path: Path) -> None:
    source = "One line\r\nof a text.\r\n\r\nAnother\rline, wants to cancel\r\nnow."
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + source.encode())
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": source}))
    for document in read(tmp_path):
        assert len(document.text) == len(source)
        assert document.text.index("cancel") == source.index("cancel")
        assert "\r" not in document.text


def test_what_files_say_of_themselves(tmp_path: Path) -> None:
    page = (
        b'<title>T</title><meta name="Author" content="A. Nonymous">'
        b'<meta property="article:published_time" content="2024-05-01"><p>text'
    )
    found = read_one(tmp_path, "a.html", page)
    said = {name: found.metadata[name] for name in ("title", "author", "date")}
    assert said == {"title": "T", "author": "A. Nonymous", "date": "2024-05-01"}
    found = read_one(tmp_path, "a.pdf", make_pdf("A fox"))
    assert found.metadata["author"] == "F. Ox"
    assert found.metadata["date"].startswith("2024-05-01T12:00:00")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/b.txt").write_text("text")
    (found,) = read(tmp_path / "deep", root=tmp_path, id_prefix="p/")
    assert (found.metadata["path"], found.metadata["folder"]) == ("p/deep/b.txt", "p/deep")


def test_headers_and_footers_of_word_documents(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("The body.")
    for number in (1, 2):
        section = document.sections[0] if number == 1 else document.add_section()
        section.header.is_linked_to_previous = section.footer.is_linked_to_previous = False
        section.header.paragraphs[0].text = "Acme Ltd"
        section.footer.paragraphs[0].text = f"Part {number}"
    table = document.sections[0].footer.add_table(1, 1, 100)
    table.cell(0, 0).text = "in a cell"
    file = io.BytesIO()
    document.save(file)
    found = read_one(tmp_path, "a.docx", file.getvalue())
    lines = [line for line in found.text.splitlines() if line]
    assert lines == ["Acme Ltd", "The body.", "Part 1", "in a cell", "Part 2"]


def test_a_format_is_added_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def subtitles(data: bytes) -> Parsed:
        lines = [line for line in data.decode().splitlines() if line and "-->" not in line]
        return Parsed("\n".join(lines), title="Subtitles", says=True)

    def records(stream: io.BufferedReader) -> Iterator[Row]:
        for number, line in enumerate(stream, start=1):
            name, _, said = line.decode().strip().partition("|")
            yield Row(number, {"id": name, "text": said} if said else {}, "" if said else "no |")

    monkeypatch.setitem(FORMATS, ".srt", Whole(subtitles))
    monkeypatch.setitem(FORMATS, ".rec", Rows(records))
    (tmp_path / "a.srt").write_text("00:01 --> 00:02\nI want to cancel.\n")
    (tmp_path / "b.rec.gz").write_bytes(gzip.compress(b"x|One.\nbroken\ny|Two.\n"))
    rejects: list[Reject] = []
    corpus = slice_os.read(tmp_path, on_reject=rejects.append)
    found = [(one.id.split("/")[-1], one.text, one.title) for one in corpus]
    assert found == [
        ("a.srt", "I want to cancel.", "Subtitles"),
        ("b.rec.gz#x", "One.", ""),
        ("b.rec.gz#y", "Two.", ""),
    ]
    assert [(one.place, one.reason) for one in rejects] == [(f"{tmp_path / 'b.rec.gz'}#2", "no |")]
    assert corpus.ignored == 0
