"""Triples from a file: what is read, and one sentence for everything that cannot be."""

import gzip
import itertools
import subprocess
import sys
import tracemalloc

import pytest

from slice_os.errors import EvaluationError, TrainingError
from slice_os.lab.train import Triple, read_triples

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
        ('"a\tb "c" d\te\u0085f\u2028g\rh\n', ('"a', 'b "c" d', "e\u0085f\u2028g\nh")),
        ("何\tä\té\n", ("何", "ä", "é")),
    ],
)
def test_only_tabs_and_line_ends_separate(tmp_path, text, row):
    assert list(read_triples(write(tmp_path / "t.tsv", text))) == [row]


@pytest.mark.parametrize("line", ["a\tb", "a\tb\tc\td", "\tb\tc", "a\t \tc", "a\tb\t"])
@pytest.mark.parametrize("name", ["triples.tsv", "triples.tsv.gz"])
def test_a_row_that_is_none_is_named_after_those_before_it(tmp_path, name, line):
    path = write(tmp_path / name, f"{TEXT}{line}\na\tb\tc\n")
    triples = read_triples(path)
    assert list(itertools.islice(triples, 5)) == ROWS
    with pytest.raises(TrainingError) as caught:
        next(triples)
    assert str(caught.value).startswith(f"{path}, line 6, is not query<TAB>positive<TAB>negative")
    assert str(caught.value).endswith(".")


def test_files_that_are_none(tmp_path):
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(TEXT.encode() * 1000)[:-20])
    plain = tmp_path / "plain.gz"
    plain.write_text(TEXT)
    cases = {
        tmp_path / "absent.tsv": "There is no file .*absent.tsv: check the path.",
        tmp_path: "cannot be read",
        write(tmp_path / "empty.tsv", ""): "is empty",
        cut: "cannot be unpacked .*: download or pack it again.",
        plain: "cannot be unpacked .*: download or pack it again.",
        write(tmp_path / "packed.tsv", gzip.compress(b"\0" * 1000)): "looks binary",
    }
    for path, message in cases.items():
        with pytest.raises(EvaluationError, match=message):
            list(read_triples(path))


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = write(tmp_path / "long.tsv", TEXT * 60_000)
    tracemalloc.start()
    assert sum(1 for _ in read_triples(path)) == 300_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 2


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
