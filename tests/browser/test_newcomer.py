"""A newcomer's task, from the first page to the file: in three minutes, without a reload."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

import slice_os
from support.newcomer import ANSWERS, PHRASES, do_task
from support.serving import serving

CALLS = Path(__file__).parents[2] / "examples" / "conversations"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("newcomer")
    with slice_os.open(folder / "calls.slice") as index:
        index.add(slice_os.read(CALLS))
        with serving({"calls": index}, workspace=str(folder / "taught")) as server:
            yield f"{server.url}/"


def test_a_newcomer_saves_what_is_right_in_nine_of_ten(page, url):
    done = do_task(page, url, lambda text: "cancel" in text.lower())
    assert not done.reloaded
    assert done.steps == ANSWERS + len(PHRASES) + 7
    assert done.seconds < 180
    texts = [row["text"].lower() for row in csv.DictReader(io.StringIO(done.saved.decode()))]
    assert len(texts) > 5
    least = re.search(r"matches are right \((\d+) %", done.told)
    assert least
    assert 100 * sum("cancel" in text for text in texts) >= int(least[1]) * len(texts), texts
