"""What a library leaves as it is in the process that uses it; only the command line is at home."""

from __future__ import annotations

import csv
import io
import logging
import warnings
from pathlib import Path

import openpyxl
import pytest
from pypdf import PdfWriter

import slice_os
from slice_os.corpus.formats import FORMATS
from slice_os.errors import ClusterError
from slice_os.storage.cluster import credentials

PACKAGE = Path(slice_os.__file__).parent


def test_only_the_command_line_asks_and_quiets():
    """Warnings' filters, the csv module's limit and a terminal belong to the whole process."""
    ours = (
        "catch_warnings",
        "simplefilter",
        "filterwarnings",
        "field_size_limit(",
        "getpass.getpass",
    )
    lab = ("lab", "exporters")
    found = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if file.relative_to(PACKAGE).parts[0] not in ("cli", *lab)
        and any(name in file.read_text() for name in ours)
    }
    assert found == {"corpus/formats/delimited.py"}  # of an instance of the module of its own


def test_reading_leaves_the_limits_and_filters_of_the_process(tmp_path):
    (tmp_path / "a.csv").write_text("text\n" + "word " * 40_000 + "\n")
    book = openpyxl.Workbook()
    book.active.append(["text"])
    book.active.append(["Some words."])
    book.save(tmp_path / "b.xlsx")
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(tmp_path / "c.pdf")
    before = csv.field_size_limit(), warnings.filters[:], logging.getLogger("pypdf").level
    rows = FORMATS[".xlsx"].parse(io.BytesIO((tmp_path / "b.xlsx").read_bytes()))
    next(rows)  # and is not read further for a while
    assert warnings.filters == before[1]
    documents = list(slice_os.read(tmp_path, on_reject=lambda reject: None))
    assert max(len(one.text) for one in documents) > csv.field_size_limit()
    assert (csv.field_size_limit(), warnings.filters, logging.getLogger("pypdf").level) == before


def test_a_password_is_asked_for_by_who_offers_it():
    environment = {"SLICE_OS_USER": "me"}
    ask = []
    credentials.ask_with(None)
    with pytest.raises(ClusterError, match="set SLICE_OS_PASSWORD too"):
        credentials.authorization_of(environment, "https://host:9200")
    try:
        credentials.ask_with(lambda prompt: ask.append(prompt) or "secret")
        said = {credentials.authorization_of(environment, "https://host:9200") for _ in range(2)}
        assert (len(said), ask) == (1, ["Password of me at https://host:9200: "])
        credentials.forget_secrets()
        credentials.authorization_of(environment, "https://host:9200")
        assert len(ask) == 2
    finally:
        credentials.ask_with(None)
