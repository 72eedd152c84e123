"""Real text for the benchmarks: the examples, mixed to any length."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import slice_os
from slice_os.text import split

EXAMPLES = Path(__file__).parent.parent / "examples"


def passages(words: int) -> list[str]:
    """Return about `words` words of the examples as passages."""
    texts: list[str] = []
    for document in slice_os.read(EXAMPLES):
        for passage in split(document):
            texts.append(passage.text)
    random.Random(0).shuffle(texts)
    kept: list[str] = []
    total = 0
    for text in texts:
        kept.append(text)
        total += len(text.split())
        if total >= words:
            break
    return kept


def documents(words: int, size: int = 1000) -> Iterator[slice_os.Document]:
    """Yield documents of `size` words, sentences of the examples in random order."""
    sentences = [line for text in passages(10**9) for line in text.split("\n") if line.strip()]
    rng = random.Random(1)
    for number in range(words // size):
        lines: list[str] = []
        count = 0
        while count < size:
            lines.append(rng.choice(sentences))
            count += len(lines[-1].split())
        yield slice_os.Document(f"{number}", " ".join(lines))


def phrases(count: int) -> list[str]:
    """Return so many different phrases of three to seven words, cut out of the examples."""
    texts = [text.split() for text in passages(10**9)]
    rng = random.Random(2)
    found: dict[str, None] = {}
    while len(found) < count:
        words = rng.choice(texts)
        size = rng.randint(3, 7)
        start = rng.randrange(max(1, len(words) - size + 1))
        found[" ".join(words[start : start + size])] = None
    return list(found)
