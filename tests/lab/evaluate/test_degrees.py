"""One threshold over many queries, and opposites."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import slice_os
from slice_os.errors import EvaluationError

ROWS = [
    ("wants to cancel", "I called you. Please cancel my subscription today. Thanks.", True),
    ("wants to cancel", "The parcel came on Monday. It was wet and the box was torn.", False),
    ("wants to cancel", "Can I change my seat? I would like the window.", False),
    ("late delivery", "The parcel came two weeks late. I had to buy another.", True),
    ("late delivery", "I called you. Please cancel my subscription today. Thanks.", False),
    ("change of seat", "Can I change my seat? I would like the window.", True),
]


def write(path, rows):
    names = ("query", "passage", "correct")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "pairs.jsonl", [(*row, "yes" if y else "no") for *row, y in ROWS])


def average_precision(right, degrees):
    """Mean, over the right ones, of the precision from each upwards."""
    above = [[r for r, other in zip(right, degrees, strict=True) if other >= d] for d in degrees]
    return np.mean([np.mean(some) for some, r in zip(above, right, strict=True) if r])


def auc(right, degrees):
    good, bad = ([d for r, d in zip(right, degrees, strict=True) if r == y] for y in (True, False))
    return np.mean([(a > b) + (a == b) / 2 for a in good for b in bad])


def test_it_is_what_plain_computation_gives(file, tmp_path):
    report = slice_os.evaluate_degrees(file)
    assert (report.pairs, report.right, report.queries) == (6, 3, 3)
    right = np.array([right for *_, right in ROWS])
    for one, rescore in zip(report.degrees, (0, 8), strict=True):
        degrees = []
        for n, (query, passage, _) in enumerate(ROWS):
            with slice_os.open(tmp_path / f"{one.name}{n}") as index:
                index.add([slice_os.Document("a", passage)])
                (hit,) = index.search(query, rescore=rescore, literal=True)
            degrees.append(hit.degree)
        if rescore:  # of an index, the other is the degree that was stored: rounded
            assert one.average_precision == pytest.approx(average_precision(right, degrees))
            assert one.auc == pytest.approx(auc(right, degrees))
            within = [auc(right[s], degrees[s]) for s in (slice(0, 3), slice(3, 5))]
            assert one.auc_within == pytest.approx(np.mean(within))
        for at, (precision, recall) in one.thresholds.items():
            above = np.array(degrees) >= at
            if np.abs(np.array(degrees) - at).min() > 0.01 and above.any():
                assert precision == pytest.approx(right[above].mean())
                assert recall == pytest.approx(right[above].sum() / 3)
        assert sum(held.pairs for held in one.reliability) == 6
        assert sum(held.pairs * held.right for held in one.reliability) == pytest.approx(3)


def test_what_cannot_be_used_is_said(tmp_path):
    for rows, said in (
        ([(*ROWS[0][:2], "perhaps")], "'perhaps' is no label"),
        ([(*ROWS[0][:2], "yes")], "needs right pairs and wrong ones"),
        ([("", "a passage", "yes")], "nothing in the column query"),
    ):
        with pytest.raises(EvaluationError, match=said):
            slice_os.evaluate_degrees(write(tmp_path / "bad.jsonl", rows))


def test_an_opposite_is_compared_with_a_paraphrase(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text(
        "kind\tphrase\tparaphrase\topposite\n"
        "easy\tthe parcel is late\tthe parcel has not come yet\tmy dog is brown\n"
        "negation\tshe wants to leave\tthe lady wishes to go away\tshe does not want to leave\n"
    )
    report = slice_os.evaluate_opposites(file)
    assert report.pairs == {"easy": 1, "negation": 1, "all": 2}
    assert report.above["easy"] == 1
    with slice_os.load_encoder() as encoder:
        one, near, far = encoder.encode(
            ["she wants to leave", "the lady wishes to go away", "she does not want to leave"]
        )
    assert report.paraphrase["negation"] == pytest.approx((1 + one @ near) / 2, abs=1e-5)
    assert report.opposite["negation"] == pytest.approx((1 + one @ far) / 2, abs=1e-5)
    assert report.above["all"] == (1 + (one @ near > one @ far)) / 2


def test_the_probe_of_the_repository_is_whole():
    file = Path(__file__).parents[3] / "examples" / "minimal-pairs.tsv"
    rows = [line.split("\t") for line in file.read_text("utf-8").splitlines()[1:]]
    assert len(rows) == 500
    assert {len(row) for row in rows} == {5}
    kinds = [row[0] for row in rows]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(
        ["negation", "antonym", "number", "role", "modal"], 100
    )
    assert len({row[2] for row in rows}) == 500
    for _, _, phrase, paraphrase, opposite in rows:
        one, near, far = (set(text.lower().split()) for text in (phrase, paraphrase, opposite))
        assert len(one & near) <= len(one & far)
