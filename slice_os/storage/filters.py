r"""Metadata filters on one keyword field: exactly what `slice_os.text.filters.Filter` means.

The field `filters` holds tokens ``name \x00 class value`` for each leaf of a document's metadata
(each member of a list):

    b  a bool: true or false
    t  the text of any other value
    n  a number, as 16 hexadecimal digits that sort as numbers do
    r  likewise of a text that reads as a number, or of an ISO date its year

so that ``year>=2015`` is a range on terms, whatever types other documents give to `year`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from slice_os.errors import QueryError
from slice_os.text import Wording, exact_words
from slice_os.text.filters import (
    _NUMBER,
    OPERATORS,
    Condition,
    Filter,
    _text,
    as_number,
    is_long,
    leaves,
)

FIELD, EXACT = "filters", "text.exact"
LONGEST = 1000
"""Bytes of UTF-8 of a name or a text that a token holds in full (Lucene allows 32,766)."""
_LAST = "\U0010ffff"
_NUL, _ESCAPE = "\0", "^"
_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


def filter_tokens(metadata: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a document's metadata for the keyword field `filters`, sorted."""
    return sorted({token for leaf in leaves(metadata) for token in _tokens(*leaf)})


def field_name(token: str) -> str:
    """Return the name of the field that a token is of."""
    return token.partition(_NUL)[0].replace("^0", _NUL).replace(_ESCAPE * 2, _ESCAPE)


def field_tokens(name: str) -> list[str]:
    """Return how the tokens of a field's values begin, one for each value."""
    return [_token(name, kind, "") for kind in "bt"]


def token_text(token: str) -> str:
    """Return the text of the value that a token is of."""
    return token.partition(_NUL)[2][1:]


def last_token(token: str) -> str:
    """Return what sorts after all tokens of a token's field, and before those of the next."""
    return f"{token.partition(_NUL)[0]}{_NUL}{_LAST}"


def filter_clauses(filters: Sequence[Condition]) -> list[dict[str, Any]]:
    """Return a query clause for each filter; to be joined by *and* (``bool.filter``).

    A `Wording` becomes a phrase in the field ``text.exact``, which holds the words of a passage and
    its title in lower case, not stemmed.

    Equality is exact at any length. A range is too, except between two texts of more than 1,000
    bytes that begin with the same 1,000.

    Raises:
        QueryError: an operator that does not exist.
    """
    return list(map(_clause, filters))


def _tokens(name: str, member: object) -> Iterator[str]:
    text = _text(member)
    if isinstance(member, bool):
        yield _token(name, "b", text)
        return
    yield _token(name, "t", _short(text))
    number = as_number(text)
    if number is not None:
        kind = "n" if isinstance(member, int | float) else "r"
        yield _token(name, kind, sortable(number))


def _clause(condition: Condition) -> dict[str, Any]:
    if isinstance(condition, Wording):
        phrase = {"match_phrase": {EXACT: " ".join(exact_words(condition.phrase))}}
        return phrase if condition.wanted else {"bool": {"must_not": [phrase]}}
    alternatives = (condition, *condition.others)
    if all(each.operator == "=" for each in alternatives):  # one clause, however many values
        return _terms(list(dict.fromkeys(chain.from_iterable(map(_equal_tokens, alternatives)))))
    return _any([_alone(each) for each in alternatives])


def _alone(filter_: Filter) -> dict[str, Any]:
    """Return the clause of a filter, whatever its alternatives."""
    if filter_.operator == "exists":
        return {"prefix": {FIELD: _token(filter_.field, "", "")}}
    if filter_.operator == "prefix":
        kinds = [("t", filter_.value), ("b", filter_.value.lower())]
        tokens = [_token(filter_.field, kind, _beginning(value)) for kind, value in kinds]
        return _any([{"prefix": {FIELD: token}} for token in tokens])
    if filter_.operator == "=":
        return _terms(_equal_tokens(filter_))
    if filter_.operator == "!=":
        return {"bool": {"must_not": [_terms(_equal_tokens(filter_))]}}
    if filter_.operator in _BOUNDS:
        return _range(filter_)
    raise QueryError(
        f"There is no operator {filter_.operator!r}: choose one of {' '.join(OPERATORS)}."
    )


def _equal_tokens(filter_: Filter) -> list[str]:
    field, value = filter_.field, filter_.value
    tokens = [_token(field, "t", _short(value))]
    if value.lower() in ("true", "false"):
        tokens.append(_token(field, "b", value.lower()))
    if _NUMBER.fullmatch(value) and not is_long(value):
        tokens.append(_token(field, "n", sortable(float(value))))
    return tokens


def _range(filter_: Filter) -> dict[str, Any]:
    field, value = filter_.field, filter_.value
    if _NUMBER.fullmatch(value):
        bound = sortable(float(value))
        return _any([_between(filter_, kind, bound) for kind in "nr"])
    holds = OPERATORS[filter_.operator]
    bools = [_token(field, "b", text) for text in ("false", "true") if holds(text, value.lower())]
    texts = _between(filter_, "t", _short(value))
    return _any([texts, _terms(bools)]) if bools else texts


def _between(filter_: Filter, kind: str, bound: str) -> dict[str, Any]:
    """Return the range from or to a bound that never leaves the tokens of its name and class."""
    here = {_BOUNDS[filter_.operator]: _token(filter_.field, kind, bound)}
    if filter_.operator in (">", ">="):
        return {"range": {FIELD: {**here, "lt": _token(filter_.field, chr(ord(kind) + 1), "")}}}
    return {"range": {FIELD: {"gte": _token(filter_.field, kind, ""), **here}}}


def _terms(tokens: list[str]) -> dict[str, Any]:
    return {"term": {FIELD: tokens[0]}} if len(tokens) == 1 else {"terms": {FIELD: tokens}}


def _any(clauses: list[dict[str, Any]]) -> dict[str, Any]:
    if len(clauses) == 1:
        return clauses[0]
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def _token(name: str, kind: str, value: str) -> str:
    """Join the parts; the first NUL ends the name, in which a NUL is therefore escaped."""
    return f"{_short(name.replace(_ESCAPE, _ESCAPE * 2).replace(_NUL, '^0'))}{_NUL}{kind}{value}"


def _beginning(text: str) -> str:
    """Return as much of a text as tokens hold of it, without half a character."""
    return text.encode("utf-8", "surrogatepass")[:LONGEST].decode("utf-8", "ignore")


def _short(text: str) -> str:
    """Return a text, or of one longer than LONGEST bytes as much as fits, and a hash.

    The result is then longer than any text kept in full, so the two are never equal; and the last
    character of Unicode before the hash keeps the order against those.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= LONGEST:
        return text
    return f"{_beginning(text)}{_LAST}{hashlib.blake2b(data, digest_size=16).hexdigest()}"


def sortable(number: float) -> str:
    """Return 16 hexadecimal digits that compare as the numbers do (0.0 and -0.0 are equal)."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    return f"{bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63):016x}"
