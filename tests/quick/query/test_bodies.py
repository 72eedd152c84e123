"""Bodies, vectors and the widened radius."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from slice_os.errors import QueryError
from slice_os.query import (
    connector,
    exact_query,
    field_vectors,
    hybrid_query,
    lexical_query,
    mining_query,
    normalization_pipeline,
    query_value,
    radius,
    rrf_pipeline,
    span_query,
)
from slice_os.storage.cluster.vectors import MARGINS
from slice_os.text.filters import Filter

VECTOR = np.array([0.1, -0.4, 0.2, 0.05], dtype=np.float32)
FILTERS = [Filter("year", ">=", "2015"), Filter("kind", "!=", "book")]


def degrees(one, other):
    one, other = one.astype(np.float64), other.astype(np.float64)
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (1 + (one * other).sum(axis=1) / norms) / 2


@given(
    hnp.arrays(np.float32, (3, 2, 8), elements=st.floats(-(2.0**100), 2.0**100, width=32)),
    st.integers(1, 8),
)
def test_field_vectors(vectors, kept):
    floats = field_vectors(vectors, "float", kept)
    rounded = field_vectors(vectors, dimensions=kept)
    assert (floats.dtype, rounded.dtype) == (np.float32, np.int8)
    assert floats.shape == rounded.shape == (3, 2, kept)
    zero = ~vectors[..., :kept].any(axis=-1)
    assert np.linalg.norm(floats, axis=-1) == pytest.approx(np.where(zero, 0.0, 1.0), abs=1e-5)
    assert np.array_equal(np.abs(rounded.astype(int)).max(axis=-1), np.where(zero, 0, 127))
    assert np.abs(rounded - 127 * floats / _largest(floats)).max() <= 0.501


def _largest(vectors):
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    return np.where(largest > 0, largest, 1)


def test_rounding_to_bytes_moves_a_degree_by_less_than_the_margin():
    rng = np.random.default_rng(3)
    one = rng.normal(size=(20_000, 384))
    other = one * rng.uniform(0, 2, size=(20_000, 1)) + rng.normal(size=one.shape)
    for kind, margin in MARGINS.items():
        stored = degrees(field_vectors(one, kind), field_vectors(other, kind))
        assert np.abs(stored - degrees(one, other)).max() < margin


@pytest.mark.parametrize(
    ("vector", "options", "message"),
    [
        (VECTOR, {"vector_type": "half"}, "no vector type 'half'"),
        (VECTOR, {"dimensions": 5}, "keeps 5 dimensions"),
        (VECTOR, {"dimensions": 0}, "keeps 0 dimensions"),
        ([math.nan, 1], {}, "no finite number"),
        (1.0, {}, "not a single number"),
        ([VECTOR, VECTOR], {}, "one vector"),
        (VECTOR * 0, {}, "is zero"),
    ],
)
def test_vectors_that_cannot_be_used(vector, options, message):
    with pytest.raises(QueryError, match=message):
        query_value(vector, **options)


def test_a_querys_vector_is_plain_json():
    assert query_value(VECTOR) == [32, -127, 64, 16]
    assert query_value([3.0, 4.0], "float") == [0.6, 0.8]
    for kind in ("byte", "float"):
        value = query_value(np.random.default_rng(0).normal(size=384), kind)
        assert json.loads(json.dumps(value)) == value
        assert np.array_equal(field_vectors(value, kind), np.array(value, np.float32))


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.integers(0, 2**32 - 1))
def test_the_radius_reaches_every_span_that_a_kept_one_stands_for(degree, tolerance, seed):
    """Walk by the tolerance's angle from a span of that degree: never below the radius."""
    rng = np.random.default_rng(seed)
    query, aside = np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    angle = math.acos(2 * degree - 1)
    span = math.cos(angle) * query + math.sin(angle) * aside
    step = np.linalg.qr(np.stack([span, rng.normal(size=6)], axis=1))[0][:, 1]
    kept = tolerance * span + math.sqrt(1 - tolerance**2) * step
    assert (1 + query @ kept) / 2 >= radius(degree, tolerance) - 1e-9


def test_the_radius_by_hand():
    assert radius(0.8, 1) == pytest.approx(0.8)
    assert radius(1, 0.9) == pytest.approx(0.95)
    assert radius(0.5, 0.6) == pytest.approx(0.1)  # 90 degrees and 53.13: cos -0.8
    assert radius(0.8, 1, 0.003) == pytest.approx(0.797)
    assert radius(0.1, 0.5) == radius(0, 1) == radius(0.001, 1, 0.01) == 0.0
    for wrong in ((1.1, 0.9), (-0.1, 0.9), (0.5, 0), (0.5, 1.1), (0.5, 0.9, -1), (math.nan, 1)):
        with pytest.raises(QueryError, match="tolerance"):
            radius(*wrong)


def test_mining():
    body = mining_query(VECTOR, 0.8, tolerance=0.95, filters=FILTERS, after=["d", 3], size=5)
    near, coarser = body["query"]["bool"]["should"]
    assert coarser["constant_score"]["filter"]["range"]["tolerance"]["lt"] == pytest.approx(0.949)
    nested = near["nested"]
    knn = nested["query"]["knn"]["spans.vector"]
    assert knn["min_score"] == pytest.approx(radius(0.8, 0.95) - 0.003)
    assert set(knn) == {"vector", "min_score", "filter"}
    assert "inner_hits" not in nested
    assert body["search_after"] == ["d", 3]
    everything = mining_query(VECTOR, 0, tolerance=0.95)
    assert everything["query"] == {"match_all": {}}
    assert (
        len(mining_query(VECTOR, 0, tolerance=1, filters=FILTERS)["query"]["bool"]["filter"]) == 2
    )
    shown = mining_query(VECTOR, 0.8, tolerance=1, spans=100)["query"]["bool"]["should"][0]
    assert shown["nested"]["inner_hits"]["size"] == 100


def test_filters_are_inside_the_knn_clause_and_beside_the_words():
    knn = span_query(VECTOR, filters=FILTERS)["query"]["nested"]["query"]["knn"]["spans.vector"]
    clauses = knn["filter"]["bool"]["filter"]
    assert len(clauses) == 2
    assert lexical_query("a", filters=FILTERS)["query"]["bool"]["filter"] == clauses
    assert exact_query(VECTOR, filters=FILTERS)["query"]["bool"]["filter"] == clauses
    saturation = hybrid_query("a", VECTOR, filters=FILTERS)["query"]["bool"]
    assert saturation["filter"] == clauses
    dense = saturation["should"][1]["dis_max"]["queries"][0]
    assert dense["nested"]["query"]["knn"]["spans.vector"]["filter"] == knn["filter"]
    lexical, dense = hybrid_query("a", VECTOR, fusion="rrf", filters=FILTERS)["query"]["hybrid"][
        "queries"
    ]
    assert lexical["bool"]["filter"] == clauses
    assert dense["nested"]["query"]["knn"]["spans.vector"]["filter"] == knn["filter"]


def test_pages():
    assert "from" not in span_query(VECTOR)
    assert span_query(VECTOR, size=5, offset=200)["from"] == 200
    for size, offset, k in ((10, 0, 100), (50, 200, 250)):
        body = span_query(VECTOR, size=size, offset=offset)
        assert body["query"]["nested"]["query"]["knn"]["spans.vector"]["k"] == k
    assert hybrid_query("a", VECTOR, fusion="rrf", offset=7)["from"] == 7
    with pytest.raises(QueryError, match="it must reach offset"):
        hybrid_query("a", VECTOR, fusion="rrf", offset=995)


@pytest.mark.parametrize(
    "call",
    [
        lambda: span_query(VECTOR, size=0),
        lambda: span_query(VECTOR, offset=-1),
        lambda: span_query(VECTOR, k=0),
        lambda: span_query(VECTOR, spans=101),
        lambda: exact_query(VECTOR, spans=-1),
        lambda: lexical_query(" "),
        lambda: hybrid_query("", VECTOR),
        lambda: hybrid_query("a", VECTOR, fusion="magic"),
        lambda: hybrid_query("a", VECTOR, weight=2),
        lambda: hybrid_query("a", VECTOR, floor=1.5),
        lambda: hybrid_query("a", VECTOR, k=0),
        lambda: mining_query(VECTOR, 2, tolerance=1),
        lambda: mining_query(VECTOR, 0.5, tolerance=1, vector_type="half"),
        lambda: normalization_pipeline(1.2),
        lambda: rrf_pipeline(0),
        lambda: rrf_pipeline(60, -0.1),
    ],
)
def test_settings_out_of_their_range(call):
    with pytest.raises(QueryError):
        call()


@pytest.mark.parametrize("weight", [0, 1, 0.3, *np.linspace(0, 1, 11).tolist()])
def test_weights_sum_to_one_and_are_never_whole_numbers(weight):
    """The plugin casts them to Double, and fails on an Integer."""
    for pipeline in (normalization_pipeline(weight), rrf_pipeline(weight=weight)):
        (processor,) = pipeline["phase_results_processors"][0].values()
        weights = json.loads(json.dumps(processor["combination"]["parameters"]["weights"]))
        assert all(isinstance(share, float) for share in weights)
        assert weights[0] == weight
        assert sum(weights) == pytest.approx(1, abs=1e-11)


def test_a_connector_asks_a_server_for_vectors_as_the_index_has_them():
    requests = connector("http://encoder:8765/", model="m", dimensions=192)
    settings, described, model, search = (body for _, body in requests)
    (pattern,) = settings["persistent"]["plugins.ml_commons.trusted_connector_endpoints_regex"]
    (action,) = described["actions"]
    assert re.fullmatch(pattern, action["url"])
    assert action["url"] == "http://encoder:8765/v1/embeddings"
    body = action["request_body"].replace("${parameters.input}", '["a"]')
    assert json.loads(body.replace("${parameters.model}", described["parameters"]["model"])) == {
        "input": ["a"], "model": "m", "dimensions": 192, "encoding_format": "int8"
    }  # fmt: skip
    assert model["connector_id"] == "CONNECTOR_ID"
    neural = search["query"]["nested"]["query"]["neural"]["spans.vector"]
    assert neural["model_id"] == "MODEL_ID"
    with pytest.raises(QueryError, match="no address"):
        connector("encoder:8765", model="m", dimensions=192)
