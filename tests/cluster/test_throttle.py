"""What holds a run back or ends it: circuit breakers, a full disk; and what it counts."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import slice_os
from slice_os.storage.cluster.cluster_errors import is_breaker
from support import faults

SERVERS = ("opensearch", "elasticsearch")

BREAKERS = {
    "opensearch": {"knn.circuit_breaker.triggered": True},
    "elasticsearch": {"indices.breaker.total.limit": "1%"},
}
COARSE = slice_os.ClusterSettings(tolerance=0.5, replicas=0)


def index(documents, place, **options):
    options = {"passage_words": faults.PASSAGE_WORDS, "cluster": COARSE, **options}
    return slice_os.index(documents, place, **options)


def test_a_circuit_breaker_is_waited_for(client, cluster, name, caplog):
    documents, place = faults.documents(), f"{cluster.url}/{name}"
    index(documents[:1], place)
    tripped = BREAKERS[cluster.server.name]
    with (
        slice_os.open(place) as opened,
        faults.settings_of_the_cluster(client, **tripped) as close,
    ):
        timer = threading.Timer(3, close)
        timer.start()
        report = opened.add(documents)
        timer.join()
    assert report.rejected == 0
    if cluster.server.name == "elasticsearch":  # it refuses whatever it is asked
        assert "status:429" in caplog.text
    else:
        assert report.retries > 0
        assert report.waiting_seconds > 0
    assert faults.passages(faults.held(client, name).values()) == faults.expected(documents)


def test_an_error_that_quotes_a_breaker_is_none():
    inner = {"type": "knn_circuit_breaker_exception", "reason": "the circuit breaker triggered"}
    assert is_breaker({"type": "mapper_parsing_exception", "reason": "x", "caused_by": inner})
    assert is_breaker({"type": "circuit_breaking_exception", "reason": "[parent] too large"})
    quoted = "Preview of field's value: 'circuit_breaking_exception'"
    assert not is_breaker({"type": "mapper_parsing_exception", "reason": quoted})
    assert not is_breaker(None)


def test_a_disk_that_fills_ends_a_run_and_the_next_completes_it(client, cluster, name):
    documents, place = faults.documents(large=400), f"{cluster.url}/{name}"
    corpus = faults.write(Path("corpus.jsonl"), documents)
    run = faults.Run(corpus, place, "--passage-words", "30", "--tolerance", "0.5",
                     "--max-rate", "20", "--metrics", "m.prom")  # fmt: skip
    assert faults.wait_for(client, name, 20)
    with faults.full_disk(client, name):
        code, _, err = run.end()
        assert code == 1
        assert "a disk is or was too full" in err
        assert faults.is_clear(err.splitlines()[-1])
    assert 'slice_os_run_exit_code{verb="index"' in Path("m.prom").read_text()
    assert 0 < len(faults.held(client, name)) < len(faults.expected(documents))
    faults.rerun(corpus, place, "--passage-words", "30", "--tolerance", "0.5")
    assert faults.passages(faults.held(client, name).values()) == faults.expected(documents)
    assert faults.settings(client, name) == (None, 1, None)


def test_a_run_counts_passages_spans_and_seconds(client, cluster, name):
    documents, place = faults.documents(), f"{cluster.url}/{name}"
    report = index(documents, place)
    stored = client.count(index=name)["count"]
    body = {"size": 0, "aggs": {"n": {"nested": {"path": "spans"}}}}
    spans = client.search(index=name, body=body)["aggregations"]["n"]["doc_count"]
    assert (report.passages, report.spans) == (stored, spans)
    assert spans > stored
    assert report.encoding_seconds > 0
    assert report.writing_seconds > 0
    assert report.sending_seconds > 0
    assert report.encoding_seconds + report.writing_seconds < report.seconds
    assert (report.retries, report.waiting_seconds) == (0, 0)
    again = index(documents, place)
    assert (again.spans, again.passages) == (0, 0)


def test_what_the_cluster_refuses_is_not_quoted_in_a_log_in_json(client, cluster, name):
    rows = [{"id": f"d{n}", "text": faults.LINES[0], "year": "Zanzibar"} for n in range(3)]
    corpus = Path("corpus.jsonl")
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = faults.Run(corpus, f"{cluster.url}/{name}", "--fields", "year:integer", "--rejects", "no",
                     "--log-format", "json", "--metrics", "m.prom")  # fmt: skip
    code, report, err = run.end()
    assert (code, report["rejected"], report["documents"]) == (3, 3, 0)
    assert "Zanzibar" in Path("no").read_text()
    *_, rejected, ended = map(json.loads, err.splitlines())
    assert rejected["message"] == "3 rejected: see no."
    assert (ended["exit_code"], ended["passages"]) == (3, 3)
    for text in ("Zanzibar", faults.LINES[0]):
        assert text not in err + Path("m.prom").read_text()
