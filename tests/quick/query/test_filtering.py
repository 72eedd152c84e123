"""Tokens and clauses mean what `support.filters` says, whatever the metadata."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slice_os.errors import QueryError
from slice_os.query import filter_clauses, filter_tokens
from slice_os.storage.filters import sortable
from slice_os.text.filters import OPERATORS, Filter, flat_metadata, parse_filters
from support.filters import holds as filter_holds
from support.filters import holds_of

LONG = "é" * 600
TEXTS = [
    "", "a", "true", "True", "TRUE", "false", "fAlse", "f", "z", "1", "01", "1.0",
    "-1", "+1e3", "1e999", "nan", "inf", "٣", "é", "\0",
    "2024", "2024-03-01", "2024-12", "2025-01-01T10:00:00Z", "2024-1",
    "\0tb", "\x01", "^0", "^", "😀", "\U0010ffff", "\uffff",
    "x=1", LONG, LONG + "a", LONG + "b", "x" * 1000, "x" * 1001, "x" * 997 + "😀",
    "x" * 997 + "\uffff", "x" * 997 + "zzz", "x" * 999 + "é", "x" * 999 + "z",
]  # fmt: skip
DIGITS = st.from_regex(r"[+-]?\d+(\.\d+)?", fullmatch=True)
texts = st.sampled_from(TEXTS) | st.text(max_size=4) | DIGITS
numbers = (
    st.integers(-5, 5)
    | st.integers()
    | st.sampled_from([0.0, -0.0, 1e16, 1e-7, 2.5, 1e300, 10**400])
    | st.floats()
)
leaves = st.none() | st.booleans() | numbers | texts
names = st.sampled_from(["a", "b", "a.b", "a\0tx", "^0", "a\0", "x" * 1200, "x" * 1201])
values = leaves | st.lists(leaves | st.lists(leaves, max_size=2), max_size=3)
metadata = st.dictionaries(names, values | st.dictionaries(names, values, max_size=2), max_size=3)


def holds(clause, tokens):
    """Evaluate a clause as the cluster does: keyword terms compare as bytes of UTF-8."""
    ((kind, body),) = clause.items()
    if kind == "bool":
        assert body.get("minimum_should_match", 1) == 1
        return (
            all(holds(one, tokens) for one in body.get("filter", ()))
            and not any(holds(one, tokens) for one in body.get("must_not", ()))
            and (not body.get("should") or any(holds(one, tokens) for one in body["should"]))
        )
    ((field, wanted),) = body.items()
    assert field == "filters"
    if kind == "term":
        return wanted in tokens
    if kind == "terms":
        return any(one in tokens for one in wanted)
    assert kind == "range"
    compare = {"gt": OPERATORS[">"], "gte": OPERATORS[">="], "lt": OPERATORS["<"]}
    compare["lte"] = OPERATORS["<="]
    return any(
        all(compare[op](token.encode(), bound.encode()) for op, bound in wanted.items())
        for token in tokens
    )


def agree(meta, one):
    expected = filter_holds(one, flat_metadata(meta).get(one.field))
    (clause,) = filter_clauses([one])
    assert holds(clause, filter_tokens(meta)) is expected, (meta, str(one))


@settings(max_examples=1500)
@given(metadata, names, st.sampled_from(list(OPERATORS)), texts | numbers.map(str))
@example({"a": True}, "a", ">", "TRUE")
@example({"a": "true"}, "a", ">", "TRUE")
@example({"a": "x\0tb"}, "a\0tx", "=", "b")
@example({"a": []}, "a", "!=", "b")
@example({"a": LONG + "a"}, "a", "=", LONG + "b")
@example({"a": {"b": [1, None, "1"]}}, "a.b", ">=", "1e0")
@example({"a": 2**60}, "a", "=", str(2**60 + 1))
@example({"a": float(2**60)}, "a", "=", str(2**60))
def test_the_clauses_mean_what_the_filter_means(meta, field, operator, value):
    within = [m for m in _members(meta, field) if operator not in ("=", "!=") and _alike(m, value)]
    if not within:
        agree(meta, Filter(field, operator, value))


def _members(meta, field):
    stored = flat_metadata(meta).get(field)
    return stored if isinstance(stored, list) else [stored]


def _alike(member, value):
    """Two texts over 1,000 bytes that begin alike: the one exception, and only for ranges."""
    one, other = str(member).encode(), value.encode()
    return one != other and min(len(one), len(other)) > 1000 and one[:996] == other[:996]


def test_every_pair_of_odd_texts():
    odd = (*TEXTS, True, False, None, 0, 1, -1.5, 1e16, 1e999, [1, "a"], [], [None])
    for operator, wanted, stored in product(OPERATORS, TEXTS, odd):
        if operator in ("=", "!=") or not _alike(stored, wanted):
            agree({"a": stored}, Filter("a", operator, wanted))


@pytest.mark.parametrize(
    "stored", [1234567890123456789, "1234567890123456789", [1234567890123456789]]
)
def test_long_integers_are_told_apart(stored):
    for wanted, meant in (("1234567890123456789", True), ("1234567890123456700", False)):
        assert filter_holds(Filter("a", "=", wanted), stored) is meant
        agree({"a": stored}, Filter("a", "=", wanted))
        agree({"a": stored}, Filter("a", "!=", wanted))
    assert filter_holds(Filter("a", "=", "9007199254740992.0"), 2**53)


def test_tokens_and_clauses_by_hand():
    assert filter_tokens({"a": {"b": [1, "x", None]}, "ok": True, "y": "2"}) == [
        "a.b\0nbff0000000000000", "a.b\0t1", "a.b\0tx", "ok\0btrue",
        "y\0rc000000000000000", "y\0t2",
    ]  # fmt: skip
    filters = [Filter("a", "=", "x"), Filter("a", "!=", "x"), Filter("d", ">", "x")]
    assert filter_clauses(filters) == [
        {"term": {"filters": "a\0tx"}},
        {"bool": {"must_not": [{"term": {"filters": "a\0tx"}}]}},
        {"range": {"filters": {"gt": "d\0tx", "lt": "d\0u"}}},
    ]  # fmt: skip
    assert filter_clauses([Filter("a", "=", "True"), Filter("y", "<=", "2")]) == [
        {"terms": {"filters": ["a\0tTrue", "a\0btrue"]}},
        {"bool": {"minimum_should_match": 1, "should": [
            {"range": {"filters": {"gte": "y\0n", "lte": "y\0nc000000000000000"}}},
            {"range": {"filters": {"gte": "y\0r", "lte": "y\0rc000000000000000"}}}]}},
    ]  # fmt: skip
    with pytest.raises(QueryError, match="operator '~'"):
        filter_clauses([Filter("a", "~", "x")])


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_sortable_numbers(one, other):
    assert (sortable(one) < sortable(other)) is (one < other)
    assert (sortable(one) == sortable(other)) is (one == other)


@given(metadata)
def test_tokens_fit_into_a_keyword_field(meta):
    assert all(len(token.encode()) < 4000 for token in filter_tokens(meta))


def test_times_with_offsets_are_compared_as_times():
    stored = {"at": "2024-04-30T23:30:00Z"}  # as the corpus has it
    for text, holds in {
        "at>=2024-05-01T01:00:00+02:00": True,
        "at>=2024-05-01T01:45:00+02:00": False,
        "at=2024-05-01T01:30:00+02:00": True,
        "at!=2024-05-01T01:30:00+02:00": False,
        "at=2024-05-01T01:30:00+01:00": False,
        "at<2024-05-01": True,
    }.items():
        (condition,) = parse_filters(text)
        assert holds_of(condition, stored) is holds, text
