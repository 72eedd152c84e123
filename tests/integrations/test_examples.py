"""The examples of docs/frameworks.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import slice_os

DOCS = Path(__file__).parents[2] / "docs" / "frameworks.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("example", EXAMPLES, ids=["langchain", "llamaindex", "haystack"])
def test_examples(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts = ["I want to cancel my plan.", "He would cancel, he says."]
    slice_os.index(
        [slice_os.Document(f"d{n}", text, metadata={"domain": "media"})
         for n, text in enumerate(texts)],
        "demo.slice",
    )  # fmt: skip
    exec(compile(example, DOCS.name, "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert "cancel" in printed[0]
