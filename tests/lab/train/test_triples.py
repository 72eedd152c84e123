"""Triples from a file: what is read, and one sentence for everything that cannot be."""

import gzip
import itertools
import subprocess
import sys
import tracemalloc

import pytest

from slice_os.errors import TrainingError
from slice_os.lab.train import Triple, read_triples
from slice_os.lab.train.labelled import LONGEST_ROW

ROWS = [("what", f"this is it {n}", f"this is not {n}") for n in range(5)]
TEXT = "".join("\t".join(row) + "\n" for row in ROWS)


def write(path, data):
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["triples.tsv", "triples.tsv.gz"])
def test_rows_are_triples(tmp_path, name):
    path = write(tmp_path / name, TEXT)
    assert list(read_triples(path)) == [Triple(*row) for row in ROWS]
    assert next(read_triples(str(path))).positive == "this is it 0"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("a\tb\tc", ("a", "b", "c")),
        ("a\tb\tc\r\n", ("a", "b", "c")),
        ("\ufeffa\tb\tc\n", ("a", "b", "c")),
        # Neither a quote nor any other control character ends a field or a row.
        ('"a\tb "c" d\te\u0085f\u2028g\rh\n', ('"a', 'b "c" d', "e\u0085f\u2028g\rh")),
        ("何\tä\té\n", ("何", "ä", "é")),
    ],
)
def test_only_tabs_and_line_ends_separate(tmp_path, text, row):
    assert list(read_triples(write(tmp_path / "t.tsv", text))) == [row]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"a\tb", "has 2 columns instead of 3: make it query<TAB>positive<TAB>negative"),
        (b"", "has 1 columns instead of 3"),
        (b"a\tb\tc\td", "has 4 columns instead of 3"),
        (b"\tb\tc", "has an empty query: fill it in"),
        (b"a\t \tc", "has an empty positive passage: fill it in"),
        (b"a\tb\t", "has an empty negative passage: fill it in"),
        (b"a\tb\tc\xff", "is not UTF-8 at byte 6: convert the file"),
        (b"a\tb\tc\0", "holds zero bytes, so it is not UTF-8 text: give rows query"),
        (b"x" * LONGEST_ROW, "is longer than 1,048,576 bytes: give a text file"),
    ],
)
@pytest.mark.parametrize("name", ["triples.tsv", "triples.tsv.gz"])
def test_a_row_that_is_none_is_named_after_those_before_it(tmp_path, name, line, message):
    path = write(tmp_path / name, TEXT.encode() + line + b"\na\tb\tc\n")
    triples = read_triples(path)
    assert list(itertools.islice(triples, 5)) == ROWS
    with pytest.raises(TrainingError) as caught:
        next(triples)
    assert str(caught.value).startswith(f"{path}, line 6, {message}")
    assert str(caught.value).endswith(".")


def test_files_that_are_none(tmp_path):
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(TEXT.encode() * 1000)[:-20])
    bent = tmp_path / "bent.gz"
    whole = bytearray(gzip.compress(TEXT.encode()))
    whole[20:24] = b"\xff\xff\xff\xff"
    bent.write_bytes(whole)
    plain = tmp_path / "plain.gz"
    plain.write_text(TEXT)
    packed = tmp_path / "packed.tsv"
    packed.write_bytes(gzip.compress(b"\0" * 1000 + TEXT.encode()))
    cases = {
        tmp_path / "absent.tsv": "There are no triples at .*absent.tsv: check the path.",
        tmp_path: "cannot be read past line 0 .*: give a file that can be.",
        tmp_path / "none" / "t.tsv": "There are no triples at",
        write(tmp_path / "empty.tsv", ""): "is empty: give a file with rows query",
        write(tmp_path / "empty.gz", ""): "is empty: give a file with rows query",
        cut: "cannot be unpacked past line .*: download or pack it again.",
        bent: "cannot be unpacked past line 0 .*: download or pack it again.",
        plain: "cannot be unpacked past line 0 .*: download or pack it again.",
        packed: "line 1, ",
        write(tmp_path / "wide.tsv", TEXT.encode("utf-16")): "line 1, holds zero bytes",
    }
    for path, message in cases.items():
        with pytest.raises(TrainingError, match=message):
            list(read_triples(path))


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = write(tmp_path / "long.tsv", TEXT * 4_000)
    size = path.stat().st_size
    tracemalloc.start()
    assert sum(1 for _ in read_triples(path)) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 10


def test_importing_training_loads_no_torch():
    code = (
        "import sys, slice_os.lab.train as t; t.read_triples, t.Triple; dir(t);"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_training_says_what_it_lacks():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import slice_os.lab.train as t\n"
        "from slice_os.errors import MissingExtraError\n"
        "try: t.slice_loss\n"
        "except MissingExtraError as exc: print(exc)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'slice-os[train]'" in done.stdout
