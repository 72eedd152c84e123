"""How fast a run may go, and what it counts."""

from __future__ import annotations

import threading
import time

import pytest

import slice_os
from slice_os.errors import LocationError
from slice_os.run_stats import Effort, Throttle


def test_a_bucket_lets_a_second_through_at_once_and_then_so_many_a_second():
    throttle, began = Throttle(200), time.monotonic()
    waited = sum(throttle.take() for _ in range(300))
    took = time.monotonic() - began
    assert 0.45 <= took < 2
    assert waited == pytest.approx(took, abs=0.2)


def test_a_bucket_below_one_a_second_and_one_that_fills_again():
    throttle = Throttle(0.5)
    assert throttle.take() == 0
    throttle = Throttle(20)
    assert throttle.take(20) == 0
    time.sleep(0.5)
    assert throttle.take(10) == pytest.approx(0, abs=0.05)
    assert throttle.take(5) >= 0.2


def test_without_a_rate_nothing_waits():
    throttle = Throttle(None)
    assert not any(throttle.take(1000) for _ in range(1000))


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_that_is_none(rate, tmp_path):
    with pytest.raises(LocationError, match="above 0"):
        slice_os.index([slice_os.Document("a", "words")], tmp_path / "i", max_rate=rate)


def test_threads_count_together():
    effort = Effort()
    before = effort.so_far()

    def work():
        for _ in range(2000):
            effort.add(spans=1, waiting_seconds=0.5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = slice_os.ingest.IndexReport()
    effort.since(before, report)
    assert (report.spans, report.waiting_seconds) == (8000, 4000)


def test_a_throttled_run_and_what_it_counts(tmp_path):
    documents = [slice_os.Document(f"d{n}", f"Words of the text {n}.") for n in range(60)]
    report = slice_os.index(documents, tmp_path / "i.slice", max_rate=20)
    assert report.passages == 60
    assert report.seconds >= 2  # the first 20 come at once
    assert report.waiting_seconds > 0
    assert report.encoding_seconds > 0
    assert report.writing_seconds > 0
    spent = report.encoding_seconds + report.writing_seconds + report.waiting_seconds
    assert spent <= report.seconds
    assert (report.spans, report.retries, report.sending_seconds) == (0, 0, 0)
    with slice_os.open(tmp_path / "i.slice") as index:
        again = index.add(documents, max_rate=1)
        assert (again.unchanged, again.passages, again.waiting_seconds) == (60, 0, 0)


def test_a_run_that_fails_has_counted(tmp_path):
    def documents():
        for number in range(200):
            yield slice_os.Document(f"d{number}", f"Words of the text {number}.")
        raise RuntimeError("the source is gone")

    seen = []
    with pytest.raises(RuntimeError):
        slice_os.index(documents(), tmp_path / "i.slice", on_progress=seen.append)
    assert seen[-1].documents == 200
    assert seen[-1].seconds >= seen[-1].writing_seconds > 0
