"""The examples in the docstrings of what people use most are run."""

import doctest

import pytest

import slice_os
from slice_os import options
from slice_os.api import Index

DOCUMENTS = {
    "call-1": "I would like to cancel my subscription today.",
    "call-2": "The parcel arrived late and the box was damaged.",
}
DOCUMENTED = [
    *(getattr(Index, name) for name in (
        "add", "search", "search_many", "mine", "get", "list", "show", "delete", "holds", "status"
    )),
    slice_os.encoder_info, slice_os.load_encoder, slice_os.plan, slice_os.read,
    options.SearchOptions,
]  # fmt: skip


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with slice_os.open(tmp_path_factory.mktemp("examples") / "calls.slice") as index:
        index.add(DOCUMENTS.items())
        yield index


@pytest.mark.parametrize("documented", DOCUMENTED, ids=lambda documented: documented.__name__)
def test_examples_print_what_they_say(documented, index, tmp_path, capsys):
    (tmp_path / "notes").mkdir()
    for name, text in DOCUMENTS.items():
        (tmp_path / "notes" / f"{name}.txt").write_text(text)
    names = {"index": index, "slice_os": slice_os}
    finder = doctest.DocTestFinder(recurse=False)
    examples = [test for test in finder.find(documented, globs=names) if test.examples]
    assert examples, documented.__name__
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in examples:
        runner.run(test)
    assert runner.failures == 0, capsys.readouterr().out
