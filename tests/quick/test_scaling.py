"""A plan of an index: by formulas that grow with what is asked for, of texts as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slice_os
from slice_os.errors import CorpusError, QueryError
from support.verbs import run

EXAMPLES = Path(__file__).parents[2] / "examples"


def cluster(**settings: Any) -> Any:
    return slice_os.plan(1e9, cluster=settings)


def test_vectors_disk_and_memory_follow_the_settings() -> None:
    usual, fewer, floats = cluster(), cluster(dimensions=192), cluster(vector_type="float")
    assert usual.vectors == fewer.vectors == floats.vectors
    assert usual.off_heap - fewer.off_heap == pytest.approx(2 * 192 * usual.vectors)
    assert cluster(codec="best_compression").disk < usual.disk
    assert floats.disk - usual.disk == pytest.approx(2 * 3 * 384 * usual.vectors)
    assert cluster(tolerance=0.7).vectors < usual.vectors < cluster(tolerance=0.95).vectors
    assert cluster(replicas=0).disk == pytest.approx(usual.disk / 2)
    assert usual.embedded_disk == fewer.embedded_disk


def test_all_grows_with_the_words_and_hours_fall_with_the_cores() -> None:
    small, large = slice_os.plan(1e6), slice_os.plan(1e9, cores=4, node_cores=16)
    assert large.disk == pytest.approx(1000 * small.disk, rel=1e-3)
    assert (small.shards, large.shards) == (1, 31)
    one = slice_os.plan(1e9, cores=1, node_cores=1)
    assert one.hours_encoding == pytest.approx(4 * large.hours_encoding)
    assert one.hours_loading == pytest.approx(16 * large.hours_loading)
    assert large.heap < 5e9  # as the largest segment is no larger


def test_shards_are_as_many_as_asked_for_or_as_they_have_to_be() -> None:
    assert slice_os.plan(1e6, cluster={"shards": 3}).shards == 3
    assert slice_os.plan(1e9, cluster={"shards": 3}).shards > 3


def test_a_corpus_says_how_many_words_it_has_and_of_what_kind() -> None:
    corpus = slice_os.read(EXAMPLES / "conversations")
    looked_at = slice_os.plan(corpus=corpus)
    scaled = slice_os.plan(1000 * looked_at.words, corpus=corpus)
    assert scaled.vectors == pytest.approx(1000 * looked_at.vectors, rel=0.01)
    assert scaled.passages == pytest.approx(1000 * looked_at.passages, rel=0.01)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "how many words"),
        ({"words": 0.5}, "from 1 to 1e15"),
        ({"words": 1e6, "node_cores": 0}, "node_cores at least 1"),
        ({"words": 1e6, "cluster": {"dimensions": 385}}, "dimensions at most 384"),
        ({"words": 1e6, "cluster": {"engine": "bbq_disk"}}, "was not measured"),
        ({"words": 1e6, "cluster": {"codec": "zstd"}}, "was not measured"),
    ],
)
def test_what_cannot_be_planned_is_said(given: dict[str, Any], says: str) -> None:
    with pytest.raises(QueryError, match=says):
        slice_os.plan(**given)


def test_a_corpus_without_text_is_said() -> None:
    with pytest.raises(CorpusError, match="holds no text"):
        slice_os.plan(corpus=[])


def test_the_verb_prints_a_table_or_json() -> None:
    done = run("plan", "--words", "1e9", "--dimensions", "192", "--tolerance", "0.9")
    assert "1,000,000,000 words" in done.stdout
    assert "byte vectors of 192 dimensions, 2 copies" in done.stdout
    done = run("plan", "--words", "1e9", "--json", "--cores", "2")
    assert json.loads(done.stdout) == slice_os.plan(1e9, cores=2).to_dict()
    run("plan", ok=2)
    run("plan", "--words", "1e9", "--encoding", "cp1252", ok=2)
