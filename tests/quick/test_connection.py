"""What a folder is given that is for a cluster, and a filter that is none: one clear sentence."""

from __future__ import annotations

import pytest

import slice_os
from slice_os.errors import LocationError, QueryError


@pytest.fixture
def place(tmp_path):
    document = slice_os.Document("a", "Some text.", metadata={"n": None, "year": 2020})
    slice_os.index([document], tmp_path / "i.slice")
    return tmp_path / "i.slice"


@pytest.mark.parametrize(
    "use",
    [
        slice_os.generations, slice_os.doctor, slice_os.check, slice_os.reindex, slice_os.swap,
        slice_os.rollback, slice_os.prune_generations,
    ],
    ids=lambda one: one.__name__,
)  # fmt: skip
def test_credentials_are_not_for_a_folder(place, use):
    with pytest.raises(LocationError, match="is a folder: leave out the credentials"):
        use(place, credentials={"user": "me"})


def test_credentials_are_for_neither_of_two_folders(place, tmp_path):
    with pytest.raises(LocationError, match="is a folder: leave out the credentials"):
        slice_os.reindex(place, to=tmp_path / "to.slice", credentials={"user": "me"})


@pytest.mark.parametrize("wanted", [None, [None], [2020, None]])
def test_none_is_no_value_to_filter_by(place, wanted):
    with slice_os.open(place) as index, pytest.raises(QueryError, match="'year' is None"):
        index.search("text", filters={"year": wanted})
