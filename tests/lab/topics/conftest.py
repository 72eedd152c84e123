"""Small corpora of known topics, and word vectors in which they lie apart."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

THEMES = {
    "garden": ["roses", "soil", "watering", "tulips", "hedge", "pruning"],
    "kitchen": ["oven", "butter", "flour", "recipe", "saucepan", "baking"],
    "harbour": ["ship", "anchor", "sailor", "cargo", "tide", "captain"],
}
PHRASES = {"garden": "climbing roses", "kitchen": "melted butter", "harbour": "container ship"}


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    """Return a file of word vectors in GloVe's text format; words of one theme are alike."""
    rng = np.random.default_rng(0)
    lines = []
    for theme, words in THEMES.items():
        middle = rng.standard_normal(16)
        for word in dict.fromkeys([*words, *PHRASES[theme].split()]):
            vector = middle + 0.4 * rng.standard_normal(16)
            lines.append(" ".join([word, *(f"{x:.4f}" for x in vector)]))
    file = tmp_path_factory.mktemp("vectors") / "words.txt"
    file.write_text("\n".join(sorted(lines)), encoding="utf-8")
    return file


@pytest.fixture
def corpus(tmp_path):
    """Return a .jsonl of 90 documents, each of one theme, which is in its metadata and id."""
    rng = random.Random(0)
    rows = []
    for k in range(90):
        theme = [*THEMES][k % 3]
        said = rng.sample(THEMES[theme], 4)
        text = f"We spoke of {said[0]} and the {said[1]}. Then {PHRASES[theme]}, {said[2]}, "
        rows.append({"id": f"{theme}-{k}", "theme": theme, "text": f"{text}{said[3]}."})
    file = tmp_path / "corpus.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file
