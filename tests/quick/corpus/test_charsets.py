# ruff: noqa: RUF001
from __future__ import annotations

import io
from pathlib import Path

import pytest

from slice_os.corpus import read
from slice_os.corpus.encodings import check_encoding, decode, open_as, open_text
from slice_os.errors import CorpusError

GERMAN = "Größe und Übermut: Ärger über die schöne Straße in München.\n"
QUOTES = "He said “hello” – it’s a naïve café idea, costing £5 or €6.\n"
SAMPLES = [
    (GERMAN, "utf-8"),
    (GERMAN, "utf-8-sig"),
    (GERMAN, "utf-16"),
    (GERMAN, "utf-16-le"),
    (GERMAN, "utf-32"),
    (GERMAN, "cp1252"),
    (GERMAN, "latin-1"),
    (QUOTES, "cp1252"),
    ("L’été dernier, à la fenêtre, le garçon a mangé une crêpe « très » bonne.\n", "cp1252"),
    ("Não, a informação é útil às pessoas; coração.\n", "latin-1"),
    ("Příliš žluťoučký kůň úpěl ďábelské ódy.\n", "cp1250"),
    ("Привет мир, как дела у вас сегодня.\n", "cp1251"),
    ("日本語のテキストです。これは試験です。\n", "shift_jis"),
    ("中文文本没有空格。我们去北京。\n", "gb18030"),
]


@pytest.mark.parametrize("times", [1, 100])
@pytest.mark.parametrize(("text", "encoding"), SAMPLES)
def test_the_text_is_right(text: str, encoding: str, times: int) -> None:
    assert decode((text * times).encode(encoding))[:2] == (text * times, 0)


def test_one_accent_late_in_a_long_latin_1_text() -> None:
    text = "This is a plain English sentence.\n" * 20_000 + "It ends in a café.\n"
    assert decode(text.encode("latin-1"))[:2] == (text, 0)


def test_a_broken_byte_in_utf_8_costs_only_itself() -> None:
    data = GERMAN.encode() * 1000
    broken = data[:30_000] + b"\xff" + data[30_000:]
    text, count, _ = decode(broken)
    assert count == 1
    assert text.replace("\ufffd", "") == GERMAN * 1000


def test_declared_encodings_are_believed() -> None:
    text = '<meta charset="iso-8859-2">\n<p>Zażółć gęślą jaźń ąąź</p>\n'
    assert decode(text.encode("iso8859-2"))[:2] == (text, 0)


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", bytes(range(256)) * 40])
def test_binary_is_refused(data: bytes) -> None:
    with pytest.raises(CorpusError, match="looks binary"):
        decode(data)


def test_a_repaired_file_is_kept_counted_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.txt").write_bytes(GERMAN.encode() + b"\xff\n")
    corpus = read(tmp_path / "a.txt")
    assert [d.text for d in corpus] == [GERMAN + "\ufffd\n"]
    assert (corpus.repaired, corpus.rejects) == (1, 0)
    assert "1 broken place" in caplog.text


JAPANESE = "日本語のテキストです。①髙。"


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [
        ("Shift_JIS", "cp932", JAPANESE),
        ("x-sjis", "cp932", JAPANESE),
        ("windows-31j", "cp932", JAPANESE),
        ("iso-2022-jp", "iso2022_jp", "日本語のテキストです。"),
        ("ks_c_5601-1987", "cp949", "한국어 텍스트입니다. 똠방각하"),
        ("gb2312", "gb18030", "中文文本没有空格。㐀"),
        ("latin1", "cp1252", QUOTES),
        ("tis-620", "cp874", "ข้อความภาษาไทย"),
        ("x-mac-cyrillic", "mac_cyrillic", "Привет мир"),
    ],
)
@pytest.mark.parametrize("form", ['<meta charset="{}">', "<?xml version='1.0' encoding='{}'?>"])
def test_pages_are_of_the_encoding_that_they_declare(
    tmp_path: Path, label: str, encoding: str, text: str, form: str
) -> None:
    page = f"{form.format(label)}<p>{text}</p>".encode(encoding)
    (tmp_path / "a.html").write_bytes(page)
    assert [d.text for d in read(tmp_path / "a.html")] == [" ".join(text.split())]


def test_a_page_that_declares_what_it_is_not_is_read_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(f'<meta charset="latin1"><p>{GERMAN}'.encode())
    assert [d.text for d in read(tmp_path / "a.html")] == [GERMAN.strip()]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_nuls_do_not_make_a_table_utf_16(tmp_path: Path, encoding: str) -> None:
    cafe = "cafe" if encoding == "ascii" else "café and naïve"
    rows = "".join(f"{n},the {cafe} number {n}\0\0\0\0\n" for n in range(40))
    (tmp_path / "a.csv").write_bytes(f"id,text\n{rows}".encode(encoding))
    documents = list(read(tmp_path / "a.csv"))
    assert len(documents) == 40
    assert documents[7].text.split() == ["the", *cafe.split(), "number", "7"]


def test_an_encoding_may_be_named_and_a_guess_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "Ключ под ковриком."
    for name, data in {"a.txt": text, "b.csv": f"text\n{text}\n", "c.html": f"<p>{text}"}.items():
        (tmp_path / name).write_bytes(data.encode("koi8-r"))
    assert [d.text.strip() for d in read(tmp_path, encoding="KOI8-R")] == [text] * 3
    assert caplog.text == ""
    list(read(tmp_path))
    assert caplog.text.count("which is a guess") == 3
    with pytest.raises(CorpusError, match="There is no encoding 'nonsense'"):
        read(tmp_path, encoding="nonsense")
    (tmp_path / "d.csv").write_bytes(b"text\na\x98b\n")
    corpus = read(tmp_path / "d.csv", encoding="cp1251")
    assert list(corpus) == []
    assert corpus.rejects == 1  # a byte that the encoding has not


@pytest.mark.parametrize("name", ["utf-16", "utf-16le", "cp1252", "UTF-8"])
def test_a_named_encoding_is_what_a_stream_is_read_in(name: str) -> None:
    mark = "\ufeff" if name == "utf-16le" else ""
    text = open_as(io.BytesIO((mark + GERMAN).encode(name)), check_encoding(name))
    assert open_text(text, newline="").read() == GERMAN
