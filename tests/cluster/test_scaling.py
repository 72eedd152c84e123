"""What is planned for three sizes is what they take on a real node and in a folder, to 15 %."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slice_os

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {
    1: {"tolerance": 0.9},
    2: {"tolerance": 0.8, "dimensions": 192, "codec": "best_compression"},
    4: {"vector_type": "float"},
}


@pytest.mark.parametrize("times", SIZES)
def test_a_plan_holds_to_15_percent(cluster: Any, name: str, tmp_path: Path, times: int) -> None:
    texts = [
        slice_os.Document(f"{turn}-{document.id}", document.text)
        for document in slice_os.read(EXAMPLES / "conversations")
        for turn in range(times)
    ]
    settings: Any = {**SIZES[times], "replicas": 0}
    planned = slice_os.plan(corpus=texts, cluster=settings)
    for location, disk in (
        (f"{cluster.url}/{name}", planned.disk),
        (str(tmp_path / "a.slice"), planned.embedded_disk),
    ):
        is_cluster = location.startswith("http")
        with slice_os.open(location, cluster=settings if is_cluster else None) as index:
            index.add(texts)
            status = index.status()
        assert planned.words == pytest.approx(status.words, rel=0.01)
        assert planned.passages == pytest.approx(status.passages, rel=0.01)
        assert disk == pytest.approx(status.bytes, rel=0.15)
        if is_cluster:
            assert planned.vectors == pytest.approx(status.details["spans"], rel=0.15)
