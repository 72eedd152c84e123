"""Verified mining of an embedded index: what it encodes."""

from __future__ import annotations

import slice_os
from slice_os.mining import mine

TEXTS = ["I want to cancel my order now.", "They want to cancel my order too.", "Good day."]


def test_each_text_is_encoded_once_and_many_passages_at_once(tmp_path, monkeypatch):
    documents = [slice_os.Document(str(n), TEXTS[n % 3]) for n in range(30)]
    slice_os.index(documents, tmp_path / "index.slice")
    with slice_os.open(tmp_path / "index.slice") as index:
        runs, encode = [], index.encoder.encode

        def encoded(texts):
            runs.append(texts)
            return encode(texts)

        monkeypatch.setattr(index.encoder, "encode", encoded)
        for batch in (mine.BATCH, 4):
            monkeypatch.setattr(mine, "BATCH", batch)
            runs.clear()
            found = list(index.mine("cancel my order", degree=0.8, verify=True))
            assert {match.document for match in found} == {str(n) for n in range(30) if n % 3 < 2}
            _, *spans = runs  # the phrase itself comes first
            assert len(spans) == -(-20 // batch)
            assert all(len(set(some)) == len(some) for some in spans)
