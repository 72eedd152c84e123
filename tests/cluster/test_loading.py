"""Loading an index of a cluster: exactly once, whatever interrupts it, and only what changed."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from pathlib import Path

import slice_os
from slice_os.storage.cluster import bulk
from support import faults

SERVERS = ("opensearch", "elasticsearch")

WORDS = ("--passage-words", str(faults.PASSAGE_WORDS), "--tolerance", "0.5")
COARSE = slice_os.ClusterSettings(tolerance=0.5)
"""Few vectors: these tests are of passages."""


def index(documents, nodes, name, **options):
    options = {"passage_words": faults.PASSAGE_WORDS, "cluster": COARSE, **options}
    return slice_os.index(documents, f"{nodes.url}/{name}", **options)


def test_an_interrupted_run_is_completed_by_the_next(client, cluster, name):
    how = signal.SIGINT if cluster.server.name == "opensearch" else signal.SIGTERM
    # So much that a slow node has not taken all when it shows the first.
    place, documents = f"{cluster.url}/{name}", faults.documents(large=1000)
    corpus = faults.write(Path("corpus.jsonl"), documents)
    run = faults.Run(corpus, place, *WORDS)
    assert faults.wait_for(client, name, 1)
    run.process.send_signal(how)
    code, _, err = run.end()
    assert code == 130
    assert err.startswith("Interrupted: every complete document is in the index")
    assert faults.is_clear(err)
    assert faults.settings(client, name) == (None, 1, None)
    partly = faults.passages(faults.held(client, name).values())
    assert 0 < len(partly) < len(faults.expected(documents))
    report = faults.rerun(corpus, place, *WORDS)
    assert report["documents"] < len(documents)  # what was complete is not done again
    assert faults.passages(faults.held(client, name).values()) == faults.expected(documents)
    assert faults.settings(client, name) == (None, 1, None)


def segments(client, name):
    stats = client.indices.stats(index=name, metric="segments")
    return stats["_all"]["primaries"]["segments"]["count"]


def test_what_was_loaded_is_merged_without_being_waited_for(client, cluster, name, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH_OPERATIONS", 1)
    seen = []

    def write_out(report):
        client.indices.refresh(index=name)  # a segment each time
        seen.append(segments(client, name))

    index(faults.documents(), cluster, name, on_progress=write_out)
    assert max(seen) > 1
    end = time.monotonic() + 60
    while segments(client, name) > 1 and time.monotonic() < end:
        time.sleep(0.2)
    assert segments(client, name) == 1
    index(faults.documents(1), cluster, name, on_progress=write_out)
    time.sleep(3)
    assert segments(client, name) > 1  # it is searched: when to merge is the cluster's


def test_an_empty_index_has_no_refresh_and_no_replicas_while_loading(client, cluster, name):
    seen = []
    chosen = slice_os.ClusterSettings(tolerance=0.5, replicas=0)

    def watch(report):
        seen.append(faults.settings(client, name))

    index(faults.documents(count=4), cluster, name, cluster=chosen)
    client.indices.put_settings(
        index=name, body={"index": {"refresh_interval": "7s", "number_of_replicas": 1}}
    )
    index(faults.documents(1, count=6), cluster, name, cluster=None, on_progress=watch)
    assert set(seen) == {("7s", 1, None)}  # it is searched: it stays as it is
    with slice_os.open(f"{cluster.url}/{name}") as opened:
        opened.delete([one.document for one in opened.list()])
    seen.clear()

    def watch_loading(report):
        interval, replicas, noted = faults.settings(client, name)
        seen.append((interval, replicas, tuple(sorted(noted.items()))))  # type: ignore[attr-defined]

    index(faults.documents(count=4), cluster, name, cluster=None, on_progress=watch_loading)
    before = (("number_of_replicas", 1), ("refresh_interval", "7s"))
    assert set(seen) == {("-1", 0, before)}
    assert faults.settings(client, name) == ("7s", 1, None)


def test_a_line_that_is_cut_and_a_busy_gateway_lose_nothing(client, cluster, name):
    documents = faults.documents(large=120)
    index(documents, cluster, f"{name}-clean")
    stop = threading.Event()

    def disturb(line):
        rng = random.Random(5)
        for turn in range(12):  # then calm: no batch gets through a line that is cut for ever
            stop.wait(rng.uniform(0.05, 0.4))
            line.busy = turn % 4 == 0
            line.cut()
            while line.busy and not stop.wait(0.05):  # until it has been met
                line.busy = line.refusals <= turn // 4
        line.busy = False

    with faults.Line(cluster.url) as line:
        with slice_os.open(f"{line.url}/{name}", cluster=COARSE, passage_words=30) as opened:
            opened.add(documents[:1])
            thread = threading.Thread(target=disturb, args=(line,))
            thread.start()
            try:
                opened.add(documents)
            finally:
                stop.set()
                thread.join()
        assert line.cuts > 1
        assert line.refusals > 0
    faults.same(client, name, documents)
    assert faults.settings(client, name) == (None, 1, None)


IMMENSE = "i" * 33_000
"""Longer than the longest term that Lucene takes."""


def test_a_document_that_the_cluster_refuses(client, cluster, name):
    documents = [*faults.documents(count=5), slice_os.Document(IMMENSE, faults.LINES[0])]
    corpus = faults.write(Path("corpus.jsonl"), documents)
    place = f"{cluster.url}/{name}"
    for run in range(2):  # and it does not count as there the next time
        code, report, err = faults.Run(corpus, place, *WORDS, "--prune", "--rejects", "no").end()
        assert code == 3, err
        assert (report["rejected"], report["pruned"]) == (1, 0)
        (rejected,) = map(json.loads, Path("no").read_text(encoding="utf-8").splitlines())
        assert rejected["place"] == f"{IMMENSE}#0"
        assert rejected["reason"].startswith("the cluster refuses it: ")
        assert "32766" in rejected["reason"]
        assert (report["documents"], report["unchanged"]) == ((0, 5) if run else (5, 0))
    found = faults.passages(faults.held(client, name).values())
    assert found == faults.expected(documents[:5])
    told: list[slice_os.Reject] = []
    report = index(documents, cluster, name, on_reject=told.append)
    assert [(reject.place, reject.document) for reject in told] == [(f"{IMMENSE}#0", IMMENSE)]
    assert report.rejected == 1


def test_only_what_changed_is_encoded_and_sent(client, cluster, name):
    documents = faults.documents(count=12, large=40)
    first = index(documents, cluster, name)
    large = documents[10]
    many = len(faults.expected([large]))
    before = faults.written(client, name)

    def again(changed: slice_os.Document) -> tuple[slice_os.ingest.IndexReport, int, int]:
        """Index with one document changed; return what was encoded, sent and deleted."""
        nonlocal before
        new = [*documents[:10], changed, *documents[11:]]
        report = index(new, cluster, name)
        now = faults.written(client, name)
        sent, deleted = now[0] - before[0], now[1] - before[1]
        before = now
        assert report.unchanged == len(new) - (changed != large)
        assert faults.passages(faults.held(client, name).values()) == faults.expected(new)
        return report, sent, deleted

    unchanged, sent, deleted = again(large)
    assert (unchanged.encoded_words, sent, deleted) == (0, 0, 0)

    # The last passage says that the document is whole: it is sent with each change.
    lines = large.text.split("\n")
    lines[20] = lines[20].upper()
    altered = slice_os.Document(large.id, "\n".join(lines), metadata=large.metadata)
    report, sent, deleted = again(altered)
    assert 0 < report.encoded_words <= 2 * faults.PASSAGE_WORDS
    assert 2 <= sent <= 3
    assert 1 <= deleted <= 2

    # Every passage has moved: all are sent, with the vectors that the index has.
    new = "A new beginning for it all. Nobody had thought of this one before. " * 2
    moved = slice_os.Document(large.id, f"{new}\n\n{altered.text}", metadata=large.metadata)
    report, sent, deleted = again(moved)
    assert 0 < report.encoded_words < first.encoded_words / 4
    assert many <= sent <= many + 3
    assert deleted <= 2

    labelled = slice_os.Document(large.id, moved.text, metadata={"v": 99})
    report, sent, deleted = again(labelled)
    assert (report.encoded_words, deleted) == (0, 0)
    assert sent == len(faults.expected([labelled]))
    assert {
        one["metadata"]["v"]
        for one in faults.held(client, name).values()
        if one["document"] == large.id
    } == {99}


def test_what_is_no_longer_in_the_corpus_is_pruned(client, cluster, name):
    documents = faults.documents(count=8)
    index(documents, cluster, name)
    report = index(documents[3:], cluster, name, prune="all")
    assert (report.pruned, report.unchanged) == (3, 5)
    assert faults.passages(faults.held(client, name).values()) == faults.expected(documents[3:])
