"""The records of what may be asked: checked at the call, and shown where they are taken."""

import inspect

import numpy as np
import pytest

import slice_os
from slice_os.errors import QueryError
from slice_os.options import MineOptions, RequestOptions, SearchOptions, described, fields


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "'size' must be a whole number from 1 to 1,000,000,000, not 0"),
        ({"weight": 2}, "'weight' must be a number from 0 to 1, not 2"),
        ({"mode": "fuzzy"}, "'mode' must be one of dense, hybrid, lexical"),
        ({"rescore": True}, "'rescore' must be a whole number of at least 0, not True"),
        ({"must": [1]}, "'must' must be a text, or several"),
        ({"siz": 3}, "no option 'siz': did you mean 'size'"),
        ({"min_degree": float("nan")}, "'min_degree' must be a number from 0 to 1"),
    ],
)
def test_a_wrong_option_is_one_sentence(options, message):
    with pytest.raises(QueryError) as caught:
        SearchOptions.of(**options)
    assert message in str(caught.value)


def test_numbers_of_numpy_and_single_texts_are_taken():
    options = SearchOptions.of(min_degree=np.float32(0.5), size=np.int64(3), must="a b")
    assert (options.min_degree, options.size, options.must) == (0.5, 3, ("a b",))
    assert options.to_dict() == {"min_degree": 0.5, "size": 3, "must": ("a b",)}
    assert SearchOptions.of(**options.to_dict()) == options


def test_mining_refuses_a_wrong_option_before_it_is_iterated(tmp_path):
    with slice_os.open(tmp_path / "i.slice") as index:
        index.add([("a", "The red ship sank.")])
        with pytest.raises(QueryError, match="'min_degree' must be a number from 0 to 1, not 7"):
            index.mine("ship", min_degree=7)


def test_every_option_is_described_and_in_the_signature():
    for record in (SearchOptions, MineOptions, RequestOptions):
        assert all(described(field) for field in fields(record)), record
    parameters = inspect.signature(slice_os.Index.search).parameters
    assert {field.name for field in fields(SearchOptions)} <= parameters.keys()
    assert parameters["size"].default == 10
