"""The file of a taught phrase: written whole, read with care."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from slice_os.errors import SliceOSError, TeachingError
from slice_os.teaching.record import (
    Estimate,
    Label,
    Prototype,
    TaughtPhrase,
    read_labels_of,
    read_taught,
)

VECTOR = np.array([0.6, 0.8, 0.0], np.float32)


def phrase():
    return TaughtPhrase(
        "cancels",
        ("wants to cancel", "leaves"),
        (Prototype(VECTOR, 14.5, -9.25, 3, 8),),
        "slice-english-v2",
        "f" * 32,
        (Label("a", 3, 9, True, "«x» ü", True), Label("b", 0, 4, False)),
        Estimate(2, 1, 0.5, 0.75, (0.5, 1.0), 0.5, (0.25, 0.75), False),
        "2026-11-26T10:00:00+00:00",
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cancels.json"
    phrase().write(path)
    return path


def change(file, **new):
    made = json.loads(file.read_text())
    for key, value in new.items():
        made[key] = value
    file.write_text(json.dumps(made))


def test_it_is_read_as_it_was_written(file):
    found, made = read_taught(file), phrase()
    assert found.prototypes[0].vector == pytest.approx(VECTOR)
    for name in ("name", "phrases", "encoder", "weights_hash", "labels", "estimate", "date"):
        assert getattr(found, name) == getattr(made, name)
    (one,) = found.prototypes
    assert (one.slope, one.shift, one.lengths) == (14.5, -9.25, range(3, 9))
    assert found.degree(0.5) == pytest.approx((1 + 9.25 / 14.5) / 2)


def test_half_a_file(file):
    text = file.read_text()
    for cut in (0, 10, len(text) // 2, len(text) - 3):
        file.write_text(text[:cut])
        with pytest.raises(TeachingError, match="no whole JSON"):
            read_taught(file)


@pytest.mark.parametrize("text", ["[]", "{}", '{"slice_os": "other"}', "3"])
def test_another_file(file, text):
    file.write_text(text)
    with pytest.raises(TeachingError, match="no taught phrase"):
        read_taught(file)


def test_another_format_and_no_file(file, tmp_path):
    change(file, format=2)
    with pytest.raises(TeachingError, match="has the format 2"):
        read_taught(file)
    with pytest.raises(TeachingError, match="check the path"):
        read_taught(tmp_path / "none.json")


def damaged(**new):
    return [{**json.loads(json.dumps(VARIANT)), **new}]


VARIANT = {"vector": [0.6, 0.8, 0.0], "slope": 1.0, "shift": 0.0, "shortest": 1, "longest": 3}


@pytest.mark.parametrize(
    "prototypes",
    [
        damaged(vector=[math.nan, 1.0, 0.0]),
        damaged(vector=[0.6, 0.8]),
        damaged(vector=[0.6, 0.8, 0.5]),
        damaged(vector="no"),
        damaged(slope=math.inf),
        damaged(slope=0.0),
        damaged(shift=None),
        damaged(shortest=5),
        damaged(longest=float("inf")),
        [],
        [{}],
        7,
    ],
)
def test_damaged_vectors_are_named_and_the_labels_are_not_lost(file, prototypes):
    change(file, prototypes=prototypes)
    with pytest.raises(TeachingError, match=r"damaged .*labels are still in it.*teach --from"):
        read_taught(file)
    phrases, labels, name = read_labels_of(file)
    assert (phrases, labels, name) == (("wants to cancel", "leaves"), phrase().labels, "cancels")


def test_a_file_of_brackets_alone_is_no_taught_phrase(file):
    file.write_text("[" * 100_000)
    for read in (read_taught, read_labels_of):
        with pytest.raises(TeachingError):
            read(file)


@pytest.mark.parametrize(
    "labels", [[{"document": "a"}], [{**phrase().labels[0].to_dict(), "right": 3}], 5]
)
def test_damaged_labels(file, labels):
    change(file, labels=labels)
    with pytest.raises(TeachingError):
        read_taught(file)
    with pytest.raises(TeachingError, match="no labels that can be read"):
        read_labels_of(file)


def test_no_label_to_teach_anew_from(file):
    change(file, labels=[])
    with pytest.raises(TeachingError, match="nothing to teach anew from"):
        read_labels_of(file)


def test_another_dimension(file):
    change(file, encoder={"name": "slice-english-v2", "weights_hash": "f" * 32, "dimension": 4})
    with pytest.raises(TeachingError, match="3 numbers, not 4"):
        read_taught(file)


def test_a_failed_write_leaves_what_was(file, monkeypatch):
    before = file.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("slice_os.files.os.fsync", full)
    with pytest.raises(SliceOSError, match="No space left"):
        phrase().write(file)
    assert file.read_bytes() == before
    assert [one.name for one in file.parent.iterdir()] == [file.name]
