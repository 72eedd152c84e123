"""What others do to an index: what slice-os then finds is right, or it says what is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from click.testing import CliRunner

import slice_os
from slice_os.cli.main import main
from slice_os.errors import SliceOSError
from support import faults

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SETTINGS = slice_os.ClusterSettings(replicas=0, shards=2, tolerance=0.5)


@pytest.fixture
def place(cluster, client):
    """An index of thirty documents, by the address of its alias."""
    name = f"calls{uuid.uuid4().hex[:8]}"
    with faults.emptied(client, name):
        place = f"{cluster.url}/{name}"
        slice_os.index(faults.documents(), place, cluster=SETTINGS, passage_words=30)
        yield place
        client.indices.delete(index=f"{name}*,-{name}-0*", ignore=[404])


def name_of(place):
    return place.rpartition("/")[2]


def answers(place):
    """Return how near the best of some searches are, and every passage with its words."""
    with slice_os.open(place) as index:
        degrees = [
            round(hit.degree, 4)
            for query in ("wants to cancel", "end the agreement", "a seat by the window")
            for hit in index.search(query, size=5)
        ]
        return degrees, [(one.passage, one.packed.to_bytes()) for one in index.passages()]


def errors(place, **options):
    """Return what verify and doctor call errors; they agree that there are some or none."""
    found = {
        one.what
        for diagnosis in (slice_os.check(place, sample=None), slice_os.doctor(place, **options))
        for one in diagnosis.findings
        if one.severity == "error"
    }
    assert all("\n" not in one for one in found)
    return found


def sound(place, before):
    assert errors(place, deep=True) == set()
    assert answers(place) == before
    report = slice_os.index(faults.documents(), place)
    assert (report.documents, report.unchanged) == (0, 30)


def point(client, place, index, **more):
    """Have the alias of an index name another one."""
    actions = [
        {"remove": {"index": "*", "alias": name_of(place)}},
        {"add": {"index": index, "alias": name_of(place), **more}},
    ]
    client.indices.update_aliases(body={"actions": actions})


def test_reindex_by_the_cluster(client, place):
    before, name = answers(place), name_of(place)
    faults.make_like(client, f"{name}-000002", f"{name}-000001")
    body = {"source": {"index": name}, "dest": {"index": f"{name}-000002"}}
    client.reindex(body=body, refresh=True)
    point(client, place, f"{name}-000002")
    sound(place, before)


def test_reindex_by_the_cluster_into_what_it_makes_itself(client, place):
    name = name_of(place)
    body = {"source": {"index": name}, "dest": {"index": f"{name}-000002"}}
    client.reindex(body=body, refresh=True)
    point(client, place, f"{name}-000002")
    for act in (answers, slice_os.check, lambda place: slice_os.index([], place)):
        with pytest.raises(SliceOSError, match="was not made by slice-os"):
            act(place)
    (what,) = [one.what for one in slice_os.doctor(place).findings if one.severity == "error"]
    assert "was not made by slice-os" in what


@pytest.mark.parametrize(("how", "shards"), [("split", 4), ("shrink", 1), ("clone", 2)])
def test_split_shrink_and_clone(client, place, how, shards):
    before, name = answers(place), name_of(place)
    client.indices.put_settings(index=name, body={"index": {"blocks.write": True}})
    own = {"number_of_shards": shards, "number_of_replicas": 0, "blocks.write": None}
    body = {"settings": {"index": own}}
    getattr(client.indices, how)(
        index=f"{name}-000001", target=f"{name}-000002", body=body, wait_for_active_shards="1"
    )
    faults.green(client, f"{name}-000002")
    point(client, place, f"{name}-000002")
    sound(place, before)
    assert slice_os.doctor(place).facts["shards"] == shards


def test_closed_and_opened(client, place):
    before, name = answers(place), name_of(place)
    client.indices.close(index=f"{name}-000001")
    what = [one.what for one in slice_os.doctor(place).findings if one.severity == "error"]
    assert what == ["The index is closed"]
    for verb in (
        ["search", "cancel", "--index", place],
        ["status", "--index", place],
        ["check", "--index", place],
    ):
        done = CliRunner().invoke(main, verb)
        assert done.exit_code == 1
        assert "closed" in done.output
        assert done.output.count("\n") == 1
    client.indices.open(index=f"{name}-000001")
    faults.green(client, name)
    sound(place, before)


def test_force_merge(client, place):
    before, name = answers(place), name_of(place)
    slice_os.index(faults.documents(1), place, prune="all")
    slice_os.index(faults.documents(), place, prune="all")
    client.indices.forcemerge(index=name, max_num_segments=1)
    sound(place, before)


def test_a_mapping_that_somebody_extended(client, place):
    before, name = answers(place), name_of(place)
    client.indices.put_mapping(index=name, body={"properties": {"team": {"type": "keyword"}}})
    sound(place, before)
    body = {"script": {"source": "ctx._source.team = 'a'"}, "query": {"term": {"document": "d1"}}}
    client.update_by_query(index=name, body=body, refresh=True)
    assert answers(place) == before
    (what,) = errors(place, deep=True)
    assert "fields" in what
    assert "(d1)" in what


def test_an_alias_on_two_indexes(client, place):
    name = name_of(place)
    faults.make_like(client, f"{name}-000002", f"{name}-000001")
    client.indices.put_alias(index=f"{name}-000002", name=name)
    for act in (answers, slice_os.check, lambda place: slice_os.index([], place)):
        with pytest.raises(SliceOSError, match="names 2 indexes"):
            act(place)
    (what,) = {one.what for one in slice_os.doctor(place).findings if one.severity == "error"}
    assert "names 2 indexes" in what


def test_what_was_changed_by_hand_is_named(client, place):
    name = name_of(place)
    for document, script in {
        "d1": "ctx._source.title = 'other'",
        "d2": "ctx._source.text = ctx._source.text + ' more'",
        "d3": "ctx._source.end += 1",
        "d4": "ctx._source.words = 'AAAA'",
        "d5": "ctx._source.words = params.words",
        "d6": "ctx._source.stamp = 'x'",
        "d7": "ctx._source.word_count += 1",
    }.items():
        words = faults.held(client, name)
        other = next(one["words"] for one in words.values() if one["document"] == "d10")
        query = {"bool": {"filter": [{"term": {"document": document}}, {"term": {"passage": 0}}]}}
        changed = {"query": query, "script": {"source": script, "params": {"words": other}}}
        assert client.update_by_query(index=name, body=changed, refresh=True)["updated"] == 1
    missing = {
        "query": {"bool": {"filter": [{"term": {"document": "d10"}}, {"term": {"passage": 3}}]}}
    }
    client.delete_by_query(index=name, body=missing, refresh=True)
    found = slice_os.check(place, sample=None)
    said = {
        one.what.partition(":")[0]: one.what for one in found.findings if one.severity == "error"
    }
    named = {what: set(re.findall(r"\bd\d+", text)) for what, text in said.items()}
    assert {"d1", "d2", "d3"} <= named["Documents with fields that are not what was indexed"]
    assert named["Documents that are not whole"] == {"d10"}
    assert {"d4", "d5", "d7"} <= named[
        "Documents whose word vectors cannot be read, or are not those of the text"
    ]
    assert "d2" in named["Documents whose text or offsets are not what was indexed"]
    assert {one.what for one in slice_os.doctor(place, deep=True).findings} >= set(said.values())
    done = CliRunner().invoke(main, ["check", "--index", place, "--all"])
    assert done.exit_code == 3
    with slice_os.open(place) as index:
        index.delete([f"d{n}" for n in (1, 2, 3, 4, 5, 6, 7, 10)])
    slice_os.index(faults.documents(), place)
    assert errors(place, deep=True) == set()


def test_a_sample_is_drawn(place):
    found = slice_os.check(place, sample=7)
    assert found.healthy
    assert any("of documents: 7." in one.what for one in found.findings)
    told = []
    slice_os.check(place, sample=None, on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1


def commands(place, snapshots):
    """Return the commands that docs/operations.md shows for a cluster, for this one."""
    section = OPERATIONS.read_text(encoding="utf-8").split("### An index in a cluster")[1]
    blocks = re.findall(r"```bash\n(.*?)```", section.split("## Check")[0], re.S)
    host, _, name = place.rpartition("/")
    for text in blocks:
        text = text.replace("https://host:9200", host).replace("/mnt/backups", snapshots)
        yield text.replace("calls", name).replace("monday", f"{name}-monday")


def test_the_snapshots_of_the_docs(cluster, client, place):
    before = answers(place)
    make, beside, back = commands(place, str(cluster.snapshots))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def shell(script):
        fails = script.replace("curl -sS", "curl -sS --fail-with-body")
        done = subprocess.run(
            ["bash", "-euc", fails],
            capture_output=True, text=True, check=False, env={**os.environ, "PATH": path},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shell(make)
    slice_os.index(faults.documents(3), place, prune="all")
    assert answers(place) != before
    shown = shell(beside)
    assert "Texts, fields and words are what was indexed, of documents: 30." in shown
    assert answers(f"{place}-monday") == before
    shell(back)
    sound(place, before)
    client.snapshot.delete(repository="backups", snapshot=f"{name_of(place)}-1")
