"""Fusions and filters by hand."""

from __future__ import annotations

import pytest

from slice_os.errors import QueryError
from slice_os.storage.fusion import FUSIONS, get_fusion
from slice_os.text.filters import flat_metadata, parse_filters
from support.filters import holds as filter_holds

DENSE = {"a": 0.9, "b": 0.8, "c": 0.6}
LEXICAL = {"b": 10.0, "d": 2.5}


def test_the_three_fusions():
    def fuse(name, weight=None):
        fusion, weight = get_fusion(name, weight)
        return fusion.fuse(DENSE, LEXICAL, weight)

    assert fuse("saturation") == pytest.approx(
        {"a": 0.72, "b": 0.8 * 0.8 + 0.2 * 0.5, "c": 0.48, "d": 0.2 * 0.2}
    )
    assert fuse("rrf") == pytest.approx(
        {"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 63, "d": 1 / 62}
    )
    assert fuse("rrf", 0.25)["b"] == pytest.approx(0.75 / 62 + 0.25 / 61)
    assert fuse("min_max") == pytest.approx(
        {"a": 0.5, "b": 0.5 * 2 / 3 + 0.5, "c": 0.0005, "d": 0.0005}
    )
    assert FUSIONS["min_max"].fuse({"a": 0.3}, {}, 0.5) == {"a": 0.5}
    assert FUSIONS["saturation"].fuse({}, {}, 0.3) == {}
    with pytest.raises(QueryError, match="choose one of"):
        get_fusion("magic", None)


@pytest.mark.parametrize(
    ("stored", "text", "holds"),
    [
        (2020, "x=2020", True), (2020, "x=2020.0", True), ("2020", "x>=2015", True),
        ("unknown", "x>=2015", False), ("01234", "x=1234", False), ("Nan", "x=Nan", True),
        ("2024-03-01", "x>=2024-02-28", True), (None, "x=1", False), (None, "x!=1", True),
        (True, "x=True", True), (False, "x=true", False), (["a", "b"], "x=b", True),
        (["a", "b"], "x!=b", False), (5, "x<10", True), ("5", "x<10", True), ("é", "x=é", True),
        ("a b", "x = a b", True), ("2024-05-01", "x>=2024", True), ("2024-05-01", "x>2024", False),
        ("2024-05-01T10:00:00Z", "x<=2024", True), ("2023-12", "x>=2024", False),
        ("2024-05-01", "x=2024", False), ("2024-5-1", "x>=2000", False),
    ],
)  # fmt: skip
def test_filters(stored, text, holds):
    (one,) = parse_filters([text])
    assert filter_holds(one, stored) is holds


@pytest.mark.parametrize("text", ["x", "=1", "x==1", "x=>1", "x=~1", "x<>1", ""])
def test_filters_that_are_not_understood(text):
    with pytest.raises(QueryError, match="field=value"):
        parse_filters([text])


def test_flat_metadata():
    assert flat_metadata({"a": {"b": {"c": 1}}, "d": float("inf")}) == {"a.b.c": 1, "d": "inf"}
