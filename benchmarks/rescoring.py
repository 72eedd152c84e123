"""What the phrase head says of spans, and what mining finds and costs by it.

Every span of some passages is encoded alone, which nobody does; mining is compared with that.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import slice_os
from slice_os.encoders import Encoder, StandaloneVectors
from slice_os.spans import PackedPassage, degree, length_window, prefix_sums
from slice_os.text import split
from slice_os.text.normal_form import plain
from slice_os.types import Document, Float32, Passage

TITLE = "The phrase head"
KINDS = (
    ("multidogo", "text/multidogo.jsonl"),
    ("topical-chat", "text/topical-chat.jsonl"),
    ("licences", "text/software-licences.jsonl"),
    ("scifact", "retrieval/scifact/corpus.jsonl"),
)
"""Two kinds of conversation, legal text, abstracts (which the head inside is not fitted to)."""
PASSAGES, PHRASES, LONGEST = 40, 48, 10
DEGREES = (0.75, 0.8, 0.85, 0.9, 0.95)
SPANS = 2400
MINED_WORDS = 250_000
"""Words of each kind that are mined to take the time."""
MINED = ["wants to cancel", "change of address", "my card has not arrived",
         "either party may terminate", "thank you"]  # fmt: skip


class Sample(NamedTuple):
    """Passages of a kind, and each of their spans: its place, its words, and their vector alone."""

    kind: str
    passages: list[Passage]
    places: list[tuple[int, int, int]]
    alone: Float32
    texts: list[str]


def run(data: Path | None) -> list[str]:
    """Return the tables."""
    if data is None:
        return []
    with slice_os.load_encoder() as encoder:
        lines = _predicted(encoder, data)
        samples = [_sample(encoder, kind, data / file) for kind, file in KINDS]
        lines += ["", *_found(encoder, samples)]
    return [*lines, "", *_cost(data)]


def _passages(file: Path, count: int, seed: int = 17) -> list[Passage]:
    documents = list(slice_os.read(file, text_fields=["text"]))
    found = random.Random(seed).sample(documents, min(4 * count, len(documents)))
    passages = [passage for document in found for passage in split(document)]
    return random.Random(seed).sample(passages, min(count, len(passages)))


def _predicted(encoder: Encoder, data: Path) -> list[str]:
    """Compare vectors of random spans with those of their words alone."""
    head = encoder.head
    assert head is not None
    rows = ["| span vector, cosine with that of its words alone | in context | phrase head |",
            "|---|---:|---:|"]  # fmt: skip
    for kind, file in KINDS:
        rng = np.random.default_rng(5)
        context, by_head, texts = [], [], []
        passages = _passages(data / file, SPANS // 8, seed=29)
        for passage, words in zip(
            passages, encoder.encode_words(one.text for one in passages), strict=True
        ):
            packed = PackedPassage.pack(words, 20, passage, head)
            sums = prefix_sums(packed.vectors), prefix_sums(packed.phrase_vectors(head))
            for length in rng.integers(1, 9, 8).tolist():
                if length <= len(words):
                    i = int(rng.integers(0, len(words) - length + 1))
                    context.append(sums[0][i + length] - sums[0][i])
                    by_head.append(sums[1][i + length] - sums[1][i])
                    texts.append(passage.text[words.starts[i] : words.ends[i + length - 1]])
        alone = encoder.encode(texts)
        said = [
            float((_unit(np.array(one)) * alone).sum(axis=1).mean()) for one in (context, by_head)
        ]
        rows.append(f"| {kind} | {said[0]:.3f} | {said[1]:.3f} |")
    return rows


def _unit(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: npt.NDArray[Any] = vectors / np.maximum(norms, 1e-9)
    return unit


def _sample(encoder: Encoder, kind: str, file: Path) -> Sample:
    passages = [
        Passage(f"{kind}-{n}", 0, 0, len(one.text), one.text)
        for n, one in enumerate(_passages(file, PASSAGES))
    ]
    places, texts = [], []
    for n, words in enumerate(encoder.encode_words(one.text for one in passages)):
        for length in range(1, LONGEST + 1):
            for i in range(len(words) - length + 1):
                start, end = int(words.starts[i]), int(words.ends[i + length - 1])
                places.append((n, start, end))
                texts.append(passages[n].text[start:end])
    forms = list(dict.fromkeys(map(plain, texts)))
    rows = {text: row for row, text in enumerate(forms)}
    vectors = encoder.encode(forms)
    return Sample(kind, passages, places, vectors[[rows[plain(text)] for text in texts]], texts)


def _phrases(samples: Sequence[Sample]) -> list[str]:
    """Return phrases of one to six words, cut out of passages of each kind at random."""
    rng = random.Random(23)
    found = []
    for k in range(PHRASES):
        words = rng.choice(samples[k % len(samples)].passages).text.split()
        length = min(1 + k % 6, len(words))
        start = rng.randrange(len(words) - length + 1)
        found.append(plain(" ".join(words[start : start + length])))
    return [text for text in dict.fromkeys(found) if any(map(str.isalpha, text))]


def _found(encoder: Encoder, samples: Sequence[Sample]) -> list[str]:
    """Compare mining with encoding every span of the phrase's lengths."""
    rows = [
        f"| {PHRASES} phrases of 1 to 6 words, of spans whose words alone reach the degree, share "
        "in or beside a match | " + " | ".join(map(str, DEGREES)) + " |",
        "|---|" + "---:|" * len(DEGREES),
    ]
    phrases = _phrases(samples)
    said: dict[bool, list[bool]] = {True: [], False: []}
    spent = []
    with (
        tempfile.TemporaryDirectory() as folder,
        slice_os.open(Path(folder) / "index.slice", encoder=encoder, judge=None) as index,
    ):
        index.add(Document(p.document, p.text) for one in samples for p in one.passages)
        for rescore in (True, False):
            shares: dict[str, list[str]] = {one.kind: [] for one in samples}
            for threshold in DEGREES:
                index._vectors = StandaloneVectors(encoder)
                found = _mined(index, phrases, threshold, rescore)
                spent.append(len(index._vectors._vectors) / max(sum(map(len, found.values())), 1))
                for one in samples:
                    near = [
                        _beside(one, row, found.get((phrase, document), ()))
                        for phrase in phrases
                        for row, document in _reaching(encoder, one, phrase, threshold)
                    ]
                    shares[one.kind].append(f"{np.mean(near):.3f}" if near else "")
                    if threshold == 0.8:
                        said[rescore] += _verbatim(one, phrases, found)
            way = "" if rescore else ", --no-rescore"
            rows += [f"| {kind}{way} | {' | '.join(own)} |" for kind, own in shares.items()]
    encoded = " | ".join(f"{one:.2f}" for one in spent[: len(DEGREES)])
    rows.append(f"| texts encoded for a match | {encoded} |")
    for rescore, held in said.items():
        way = "by default" if rescore else "with --no-rescore"
        rows += ["", f"Of {len(held)} places where the very words stand {sum(held)} have 1 {way}."]
    return rows


Found = dict[tuple[str, str], list[tuple[int, int, float]]]
"""Phrase and document -> where the matches begin and end, and their degrees."""


def _mined(index: slice_os.Index, phrases: list[str], threshold: float, rescore: bool) -> Found:
    found: Found = {}
    for one in index.mine(phrases, min_degree=threshold, rescore=rescore, literal=True):
        place = one.document_start, one.document_end, one.degree
        found.setdefault((one.phrase, one.document), []).append(place)
    return found


def _verbatim(sample: Sample, phrases: Sequence[str], found: Found) -> list[bool]:
    """Tell of each place of a phrase's very words whether a match of degree 1 is there."""
    places: dict[str, list[int]] = {}
    for row, text in enumerate(sample.texts):
        places.setdefault(plain(text).casefold(), []).append(row)
    return [
        any(_overlap(sample, row, one) and one[2] == 1 for one in found.get((phrase, document), ()))
        for phrase in phrases
        for row in places.get(phrase.casefold(), ())
        for document in [sample.passages[sample.places[row][0]].document]
    ]


def _reaching(
    encoder: Encoder, sample: Sample, phrase: str, threshold: float
) -> Iterator[tuple[int, str]]:
    window = length_window(len(phrase.split()))
    degrees = degree(sample.alone @ encoder.encode(phrase))
    for row in np.flatnonzero(degrees >= threshold).tolist():
        if len(sample.texts[row].split()) in window:
            yield row, sample.passages[sample.places[row][0]].document


def _overlap(sample: Sample, row: int, match: tuple[int, int, float]) -> bool:
    _, start, end = sample.places[row]
    return match[0] < end and start < match[1]


def _beside(sample: Sample, row: int, matches: Sequence[tuple[int, int, float]]) -> bool:
    return any(_overlap(sample, row, one) for one in matches)


def _cost(data: Path) -> list[str]:
    """Time mining as it is by default and without rescoring, side by side."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "index.slice"
        with slice_os.open(place) as index:
            for _, file in KINDS:
                index.add(_some(data / file), on_reject=lambda reject: None)
            status = index.status()
            taken: dict[bool, list[float]] = {True: [], False: []}
            counts = {}
            for _ in range(3):  # by turns: the machine may be busy now and then
                for rescore in (False, True):
                    index._vectors = None
                    start = time.perf_counter()
                    counts[rescore] = sum(1 for _ in index.mine(MINED, rescore=rescore))
                    taken[rescore].append(time.perf_counter() - start)
    least = {way: min(times) for way, times in taken.items()}
    ratio = least[True] / least[False]
    rows += [
        f"| mining {status.words:,} words for {len(MINED)} phrases | time | matches |",
        "|---|---:|---:|",
        f"| `--no-rescore` | {least[False]:.1f} s | {counts[False]:,} |",
        f"| by default | {least[True]:.1f} s, {ratio:.1f} × | {counts[True]:,} |",
        "",
        f"A word takes {status.bytes / status.words:.0f} bytes of the folder, text and postings "
        "included.",
    ]
    return rows


def _some(file: Path) -> Iterator[Document]:
    words = 0
    for document in slice_os.read(file, text_fields=["text"]):
        yield document
        words += len(document.text.split())
        if words > MINED_WORDS:
            return
