"""Documents of every kind that people have: all that they say is read, and once."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import docx
import pptx
import pytest
from fpdf import FPDF
from fpdf.enums import EncryptionMethod
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from slice_os.corpus import read
from support.corpus import read_all, read_one

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def changed(data: bytes, parts: dict[str, str], put: dict[str, tuple[str, str]]) -> bytes:
    """Return a zip file with more parts, and with texts put before what stands in others."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name in put:
                before, more = put[name]
                at = text.rindex(before.encode())
                text = text[:at] + more.encode() + text[at:]
            new.writestr(name, text)
        for name, part in parts.items():
            new.writestr(name, part)
    return file.getvalue()


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


BODY = (
    "".join(
        f"<w:p>{one}</w:p>"
        for one in (
            run("before") + f'<w:ins w:id="1" w:author="a">{run(" accepted")}</w:ins>'
            '<w:del w:id="2" w:author="a"><w:r><w:delText>deleted</w:delText></w:r></w:del>',
            f'<w:moveFrom w:id="3" w:author="a">{run("moved")}</w:moveFrom>'
            f'<w:moveTo w:id="4" w:author="a">{run("moved")}</w:moveTo>',
            f"<w:sdt><w:sdtContent>{run('controlled')}</w:sdtContent></w:sdt>",
            run("noted") + '<w:r><w:footnoteReference w:id="2"/></w:r>'
            '<w:r><w:endnoteReference w:id="2"/></w:r>',
            "<w:r><w:t>left</w:t><w:tab/><w:t>right</w:t></w:r>",
            '<w:r><w:pict><v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox>'
            f"<w:txbxContent><w:p>{run('boxed')}</w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r>",
        )
    )
    + f"<w:sdt><w:sdtContent><w:p>{run('blocked')}</w:p></w:sdtContent></w:sdt>"
)


def word() -> bytes:
    file = io.BytesIO()
    docx.Document().save(file)
    more = {}
    types = links = ""
    for kind, inside in (
        ("footnotes", "footnote"),
        ("endnotes", "endnote"),
        ("comments", "comment"),
    ):
        text = f'<w:{inside} w:id="2" w:author="A"><w:p>{run(f"the-{inside}")}</w:p></w:{inside}>'
        more[f"word/{kind}.xml"] = f'<w:{kind} xmlns:w="{W}">{text}</w:{kind}>'
        types += (
            f'<Override PartName="/word/{kind}.xml" ContentType="application/vnd.openxmlformats-'
            f'officedocument.wordprocessingml.{kind}+xml"/>'
        )
        links += f'<Relationship Id="r{kind}" Type="{OFFICE}/{kind}" Target="{kind}.xml"/>'
    put = {
        "word/document.xml": ("<w:sectPr", BODY),
        "[Content_Types].xml": ("</Types>", types),
        "word/_rels/document.xml.rels": ("</Relationships>", links),
    }
    return changed(file.getvalue(), more, put)


def test_nothing_of_a_word_document_is_lost_or_said_twice(tmp_path: Path) -> None:
    words = read_one(tmp_path, "a.docx", word()).text.split()
    wanted = "before accepted moved controlled noted left right boxed blocked the-footnote"
    assert sorted(words) == sorted([*wanted.split(), "the-endnote", "the-comment"])


def slides() -> bytes:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "The title"
    slide.placeholders[1].text = "The body"
    group = slide.shapes.add_group_shape().shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 99, 99).text_frame.text = "grouped"
    table = slide.shapes.add_table(1, 2, 0, 0, 99, 99).table
    table.cell(0, 0).text, table.cell(0, 1).text = "one", "two"
    data = CategoryChartData()
    data.categories = ["category"]
    data.add_series("series", (1,))
    slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 99, 99, data)
    slide.notes_slide.notes_text_frame.text = "noted"
    deck.slides.add_slide(deck.slide_layouts[1]).shapes.title.text = "The second"
    file = io.BytesIO()
    deck.save(file)
    comment = (
        '<p:cmLst xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"><p:cm>'
        "<p:text>commented</p:text></p:cm></p:cmLst>"
    )
    link = f'<Relationship Id="rC" Type="{OFFICE}/comments" Target="../comments/comment1.xml"/>'
    rels = {"ppt/slides/_rels/slide1.xml.rels": ("</Relationships>", link)}
    return changed(file.getvalue(), {"ppt/comments/comment1.xml": comment}, rels)


def test_slides_have_their_notes_comments_and_charts_beside_them(tmp_path: Path) -> None:
    text = read_one(tmp_path, "a.pptx", slides()).text
    lines = [line for line in text.splitlines() if line]
    assert lines[:4] == ["The title", "The body", "grouped", "one two"]
    assert {"noted", "commented", "series", "category"} <= set(lines)
    assert lines[-1] == "The second"


ODF = (
    '<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b"><office:body>'
    "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
    '<text:h>Heading</text:h><text:p>One<text:s text:c="3"/>line<text:tab/>goes<text:line-break/>on'
    "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>noted</text:p>"
    "</text:note-body></text:note></text:p><text:list><text:list-item><text:p>listed</text:p>"
    "</text:list-item></text:list><table:table-row><table:table-cell><text:p>a</text:p>"
    "</table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row>"
    "</office:body></office:document-content>"
)
META = (
    '<m xmlns:dc="d" xmlns:meta="e"><dc:title>T &amp; U</dc:title>'
    "<meta:initial-creator>Ann</meta:initial-creator></m>"
)


@pytest.mark.parametrize("name", ["a.odt", "a.odp"])
def test_open_documents(tmp_path: Path, name: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("content.xml", ODF)
        packed.writestr("styles.xml", '<s xmlns:text="t"><text:p>headed</text:p></s>')
        packed.writestr("meta.xml", META)
    found = read_one(tmp_path, name, file.getvalue())
    lines = [line for line in found.text.splitlines() if line]
    assert lines == ["Heading", "noted", "One line goes on", "listed", "a b", "headed"]
    assert (found.title, found.metadata["author"]) == ("T & U", "Ann")


def test_rich_text(tmp_path: Path) -> None:
    source = rb"{\rtf1\ansi\ansicpg1252{\info{\title T}}Caf\'e9 \u8364? 5.\par{\footnote noted}end}"
    found = read_one(tmp_path, "a.rtf", source)
    assert found.title == "T"
    assert found.text.split() == ["Café", "€", "5.", "end", "noted"]


def test_e_books(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(
            "META-INF/container.xml",
            '<c xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfile full-path="x/b.opf"/></c>',
        )
        packed.writestr(
            "x/b.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" '
            'xmlns:d="http://purl.org/dc/elements/1.1/">'
            '<d:title>Book</d:title><item id="a" href="two.xhtml"/>'
            '<item id="b" href="o%20ne.xhtml"/>'
            '<itemref idref="b"/><itemref idref="a"/></package>',
        )
        packed.writestr("x/two.xhtml", "<body><p>Second.</p></body>")
        packed.writestr("x/o ne.xhtml", "<body><h1>First</h1><p>Text.</p></body>")
    found = read_one(tmp_path, "a.epub", file.getvalue())
    assert (found.title, found.text) == ("Book", "First\n\nText.\n\nSecond.")


MAIL = (
    b"From: Ann <ann@x.org>\r\nTo: bob@x.org\r\nSubject: =?utf-8?q?Caf=C3=A9?=\r\n"
    b"Date: Mon, 1 Jan 2024 10:00:00 +0200\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"
    b"Content-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\n"
    b"Content-Type: text/plain; charset=iso-8859-1\r\n"
    b"Content-Transfer-Encoding: quoted-printable\r\n\r\nThe caf=E9.\r\n"
    b"--c\r\nContent-Type: text/html\r\n\r\n<p>The caf&eacute;.</p>\r\n--c--\r\n"
    b"--b\r\nContent-Type: text/html\r\nContent-Disposition: attachment; filename=a.html\r\n\r\n"
    b"<p>attached</p>\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n"
    b"Subject: inner\r\n\r\nforwarded\r\n"
    b"--b--\r\n"
)


def test_messages(tmp_path: Path) -> None:
    found = read_one(tmp_path, "a.eml", MAIL)
    assert found.text == "Café\n\nThe café.\n\nattached\n\ninner\n\nforwarded"
    about = {name: found.metadata[name] for name in ("author", "to", "date", "attachments")}
    assert about == {
        "author": "Ann <ann@x.org>",
        "to": "bob@x.org",
        "date": "2024-01-01T08:00:00Z",
        "attachments": ["a.html"],
    }
    folder = b"From a Mon\nMessage-ID: <1@x>\nSubject: one\n\n>From here.\n\nFrom b Mon\n" + MAIL
    first, second = read_all(tmp_path, "a.mbox", folder)
    assert (first.id, first.text) == ("a.mbox#1@x", "one\nFrom here.")
    assert second.id == "a.mbox#2"
    assert second.text.startswith("Café\nThe café.")


@pytest.mark.parametrize("name", ["a.srt", "a.vtt"])
def test_subtitles_run_on_over_cues_and_know_their_times(tmp_path: Path, name: str) -> None:
    head = "WEBVTT\n\nNOTE not said\n\n" if name == "a.vtt" else ""
    cues = [("A sentence runs", 1), ("<i>over two</i> cues.", 2), ("It ends.", 3)]
    cues += [("word " * 70 + "end.", 4), ("The last.", 5)]
    text = head + "".join(
        f"{number}\n00:00:0{number},000 --> 00:00:0{number},900\n{said}\n\n"
        for said, number in cues
    )
    first, last = read_all(tmp_path, name, text)
    assert first.text.startswith("A sentence runs over two cues.\nIt ends.\nword word")
    assert (first.metadata["start"], first.metadata["end"]) == ("00:00:01.000", "00:00:04.900")
    assert (last.id, last.text) == (f"{name}#00:00:05.000", "The last.")


def test_who_speaks_in_subtitles(tmp_path: Path) -> None:
    cue = "00:01.000 --> 00:02.000 align:start\n"
    text = f"WEBVTT\n\n{cue}<v Ann>I want\n\n{cue}<v Ann>to cancel.\n\n{cue}<v Bob>Why?\n"
    found = read_one(tmp_path, "a.vtt", text)
    assert found.text == "Ann: I want to cancel.\nBob: Why?"
    assert found.metadata["speakers"] == ["Ann", "Bob"]


def test_notebooks(tmp_path: Path) -> None:
    picture = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo"}}
    cells = [
        {"cell_type": "markdown", "source": ["# Head\n", "said"]},
        {"cell_type": "code", "source": "code", "outputs": [{"text": ["printed\n"]}, picture]},
    ]
    found = read_one(tmp_path, "a.ipynb", json.dumps({"cells": cells}))
    assert (found.title, found.text) == ("Head", "# Head\nsaid\n\ncode\n\nprinted")


@pytest.mark.parametrize(
    ("name", "source", "title"),
    [
        ("a.rst", "=====\nTitle\n=====\n\nText [1]_.\n\n.. [1] noted\n", "Title"),
        ("a.adoc", "= Title\n:toc:\n\nText.footnote:[noted]\n", "Title"),
        ("a.org", "#+TITLE: Title\n* Heading\nText.\n", "Title"),
    ],
)
def test_of_markup_the_source_is_the_text(
    tmp_path: Path, name: str, source: str, title: str
) -> None:
    found = read_one(tmp_path, name, source)
    assert (found.text, found.title) == (source, title)


def test_an_encrypted_pdf_without_a_password_is_read(tmp_path: Path) -> None:
    paper = FPDF()
    paper.add_page()
    paper.set_font("Times", size=10)
    paper.text(15, 20, "Nobody needs a password.")
    paper.set_encryption("owner", encryption_method=EncryptionMethod.AES_256)
    found = read_one(tmp_path, "a.pdf", bytes(paper.output()))
    assert found.text == "Nobody needs a password."


def test_what_only_typesetting_has_is_not_in_the_text(tmp_path: Path) -> None:
    page = "<p>the o\ufb03ce can\u00adcel\u200bs a cafe\u0301</p>"
    assert read_one(tmp_path, "a.html", page).text == "the office cancels a caf\u00e9"
    source = "the o\ufb03ce can\u00adcels"
    assert read_one(tmp_path, "a.txt", source).text == source  # so that offsets are the file's


PAGE = """<title>T</title><body><nav>Home</nav><div class="navbar x">Menu</div>
<div id="cookie-banner">We use cookies</div><div style="display: none">secret</div><p hidden>no</p>
<main><h1>Head</h1><p>The text about cookies.</p><ol start=3><li>three<li>four</ol></main></body>"""


def test_of_a_page_what_stands_around_the_text_is_left_out(tmp_path: Path) -> None:
    found = read_one(tmp_path, "a.html", PAGE)
    assert found.text == "Head\n\nThe text about cookies.\n3. three\n4. four"
    (whole,) = read(tmp_path / "a.html", whole_page=True)
    assert whole.text.startswith("Home\nMenu\nWe use cookies\n")
    assert "secret" not in whole.text
    assert read_one(tmp_path, "b.html", "<nav>All there is</nav>").text == "All there is"


def test_front_matter_is_metadata_and_pictures_are_no_words(tmp_path: Path) -> None:
    note = "---\ntitle: A note\ntags: [a, b]\nday: 2024-05-01\n---\n# Head\n"
    picture = "![x](data:image/png;base64," + "iVBORw0KGgo" * 20_000 + ") after"
    found = read_one(tmp_path, "a.md", note + picture)
    assert found.text.split() == ["#", "Head", "![x](", ")", "after"]
    assert found.text.index("after") == (note + picture).index("after")
    assert (found.title, found.metadata["tags"]) == ("A note", ["a", "b"])
    assert found.metadata["day"] == "2024-05-01"
    for name, text in {
        "rule.md": "---\nA text between two rules.\n---\nmore",
        "bomb.md": "---\na: &a [x]\nb: [*a, *a]\n---\nmore",
        "bool.md": "---\na: !!bool maybe\n---\nmore",
        "int.md": '---\na: !!int ""\n---\nmore',
        "time.md": "---\na: !!timestamp x\n---\nmore",
        "hex.md": f"+++\na = 0x{'f' * 5000}\n+++\nmore",
    }.items():
        assert read_one(tmp_path, name, text).text == text
    toml = read_one(tmp_path, "b.md", "+++\ntitle = 'T'\ndraft = true\n+++\nText.")
    assert (toml.title, toml.text.strip(), toml.metadata["draft"]) == ("T", "Text.", True)
