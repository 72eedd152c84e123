"""What a run keeps of the documents that it may have to do again."""

from __future__ import annotations

from itertools import islice

from slice_os.ingest import plan as source
from slice_os.types import Document


def test_what_may_have_to_be_done_again_counts_with_its_metadata(monkeypatch):
    monkeypatch.setattr(source, "SETTLED_CHARACTERS", 13_000)
    rows = [Document(str(n), "text", metadata={"vector": [0.5] * 1000}) for n in range(9)]
    kept = source.Unsettled(rows)
    begun = iter(kept)
    assert [one.id for one in islice(begun, 2)] == ["0", "1"]
    assert not kept.done()
    assert [one.id for one in islice(begun, 1)] == ["2"]
    assert kept.done()
    kept.settle()
    kept.repeat()
    assert [one.id for one in kept] == [str(n) for n in range(2, 9)]
