"""A small collection to retrieve from, in each of the forms that can be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slice_os.errors import EvaluationError
from slice_os.lab.evaluate import evaluate_retrieval

THREE = ("lexical", "dense", "hybrid:saturation:0.3")
LONG = " ".join(
    f"In chapter {number} the captain tells how the ship met the ice and sank in the cold night."
    for number in range(24)
)
DOCUMENTS = {
    "cancel": ("Leaving", "The customer wants to cancel her contract before the year is over."),
    "refund": ("", "Nobody answered when he asked the office to pay the money back."),
    "penguins": ("Birds", "Penguins live on the ice of the far south and eat fish."),
    "bread": ("Rye", "Mix the flour with water, let it rest, and bake the loaf for an hour."),
    "ship": ("The sinking", LONG),
    "boat": ("", "A small boat went down off the coast during the storm."),
    "liability": ("Terms", "Liability is limited to the amount that was paid for the licence."),
    "garden": ("", "Roses need sun, water and a little patience."),
    "music": ("Strings", "The violin is tuned in fifths and played with a bow."),
    "chess": ("", "White moves first, and a pawn that reaches the last rank is promoted."),
}
QUERIES = {
    "1": "end the agreement early",
    "2": "birds of Antarctica",
    "3": "the ship sank in the night",
    "4": "baking a loaf",
    "5": "zymurgy",
    "6": "money back",
}
QRELS = {
    "1": {"cancel": 2, "liability": 1},
    "2": {"penguins": 1},
    "3": {"ship": 2, "boat": 1, "garden": 0},
    "4": {"bread": 1},
    "5": {"music": 1},
    "6": {"refund": 1, "cancel": 1},
}
JUDGEMENTS = [(q, d, score) for q, judged in QRELS.items() for d, score in judged.items()]


def _lines(rows) -> str:
    return "".join(f"{row}\n" for row in rows)


def write_trec_qrels(file: Path) -> None:
    file.write_text(_lines(f"{q} 0 {d} {score}" for q, d, score in JUDGEMENTS))


def write_beir_qrels(file: Path, judgements=JUDGEMENTS) -> None:
    file.parent.mkdir(exist_ok=True)
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in judgements)]
    file.write_text(_lines(rows))


def _wrapped(text: str) -> str:
    return text.replace(", ", ",\n")


def write_beir(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    documents = [
        json.dumps({"_id": name, "title": title, "text": text})
        for name, (title, text) in DOCUMENTS.items()
    ]
    queries = [json.dumps({"_id": number, "text": text}) for number, text in QUERIES.items()]
    (folder / "corpus.jsonl").write_text(_lines(documents))
    (folder / "queries.jsonl").write_text(_lines([*queries, '{"_id": "9", "text": "unjudged"}']))
    write_beir_qrels(folder / "qrels" / "test.tsv")
    return folder


def write_trec(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    texts = [f"{name}\t{text}" for name, (_, text) in DOCUMENTS.items()]
    (folder / "collection.tsv").write_text(_lines(texts))
    (folder / "queries.tsv").write_text(_lines(f"{q}\t{text}" for q, text in QUERIES.items()))
    write_trec_qrels(folder / "qrels.txt")
    return folder


def write_smart(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    numbers = {name: number for number, name in enumerate(DOCUMENTS, start=1)}
    texts = [
        f".I {numbers[name]}\n.T\n{title}\n.A\nNobody\n.W\n{_wrapped(text)}\n.X\n1\t5"
        for name, (title, text) in DOCUMENTS.items()
    ]
    judged = [f"  {q:>4}  {numbers[d]:>4}\t0\t0.000000" for q, d, score in JUDGEMENTS if score]
    (folder / "SET.ALL").write_text(_lines(texts))
    (folder / "SET.QRY").write_text(_lines(f".I {q}\n.W\n{t}" for q, t in QUERIES.items()))
    (folder / "SET.REL").write_text(_lines(judged))
    return folder


def retrieval_error(*arguments: Any, **options: Any) -> str:
    """Return the one sentence with which an evaluation is refused."""
    with pytest.raises(EvaluationError) as caught:
        evaluate_retrieval(*arguments, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message
