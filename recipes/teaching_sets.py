"""Make sets for `slice-os evaluate teaching`: an index, and what stands where in it.

    python recipes/teaching_sets.py banking77-train.csv banking
    python recipes/teaching_sets.py clinc150.json clinc
    python recipes/teaching_sets.py software-licences.jsonl licences
    python recipes/teaching_sets.py retrieval/cisi cisi

Of intents (a .csv with text and category, CLINC150's .json) a passage is two to four utterances at
random, and a phrase the name of an intent in words. Of licences a document is a licence without
its headings, and what is marked is the section below a heading of some kind; the phrase says in a
layman's words what such a section is about. Of a test collection (a folder) a phrase is a query of
at most 40 words for which at least 20 documents are relevant, and those are marked whole. Writes
OUT/gold.jsonl and OUT/index.slice.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import click

import slice_os
from slice_os.lab.evaluate.collections import read_collection

Marked = tuple[str, str, int, int]
OTHERS = (2, 3, 4)
SHORTEST = 15
"""Words of a section below which it is left out."""
FEWEST = 12
"""Sections of a kind below which it is left out."""
LONGEST_QUERY, FEWEST_RELEVANT = 40, 20
"""Words of a query above which, and relevant documents below which, it is left out."""
KINDS = {
    "when the agreement can be ended": "terminat",
    "keeping information secret": "confidential|non-?disclosure",
    "paying for the other side's legal claims": "indemn",
    "how much damages can be claimed": r"limit\w* (of|on) (liab|rem|dam)|liability",
    "promises that the software works as described": "warrant",
    "which state's law applies": "governing law|applicable law|choice of law|jurisdiction",
    "handing the contract over to somebody else": "assign|successor",
    "events beyond control that excuse delay": r"force majeure|excusable|acts? of god",
    "where to send formal letters": r"^notices?$|notification",
    "when invoices must be paid": "payment|fees?$|price|royalt|compensation|invoic",
    "who pays the taxes": "tax",
    "nothing outside this document counts": "entire agreement|integration|complete agreement",
    "help and updates after delivery": "maintenance|support",
    "who owns the software": "owner|proprietary|intellectual|title",
    "permission to use the software": r"grant|^licen[sc]e$|scope of licen",
    "how long the agreement lasts": "^term$|duration|renewal|^term of",
    "the rest stays valid if one part is not": "severab|invalid",
    "not enforcing a right once does not lose it": "waiver",
    "settling disagreements without a court": "arbitrat|dispute",
    "checking the customer's books": "audit|records|inspection",
    "depositing the source code with a third party": "escrow|source code",
    "installing and accepting the product": "deliver|installation|acceptance",
    "sending the software to other countries": "export",
    "coverage that has to be bought": "insurance",
    "using the other's name and logo": "publicity|press|advertis|trademark|trade ?names?",
    "teaching the customer's staff": "training",
    "claims that the software violates a patent": "infring",
}
_HEADING = re.compile(
    r"^[ \t]*(?:(?:ARTICLE|Article|SECTION|Section)\s+)?"
    r"(?:[0-9]{1,2}|[IVX]{1,5}|[0-9]{1,2}\.[0-9]{1,2})[.)]?(?:[0-9]{1,2}[.)]?)?[ \t]+"
    r"([A-Z][A-Za-z,;&/'\- \t]{2,58}?)[ \t]*(?:[.:]|\n|$)",
    re.M,
)
_CAPITALS = re.compile(r"^[ \t]*([A-Z][A-Z,;&/'\- ]{3,58})[.:]?[ \t]*$", re.M)


@click.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--seed", default=1, show_default=True)
def main(source: Path, out: Path, seed: int) -> None:
    """Write OUT from SOURCE."""
    out.mkdir(parents=True)
    if source.is_dir():
        documents, marked = _collection(source)
    elif source.suffix == ".jsonl":
        documents, marked = _licences(source)
    else:
        documents, marked = _intents(source, random.Random(seed))
    with (out / "gold.jsonl").open("w", encoding="utf-8") as stream:
        for query, document, start, end in marked:
            row = {"query": query, "document": document, "start": start, "end": end}
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    slice_os.index(documents, out / "index.slice")


def _intents(source: Path, rng: random.Random) -> tuple[list[slice_os.Document], list[Marked]]:
    rows = list(_utterances(source))
    rng.shuffle(rows)
    documents: list[slice_os.Document] = []
    marked: list[Marked] = []
    while rows:
        name, text = f"d{len(documents):05}", ""
        for _ in range(min(rng.choice(OTHERS), len(rows))):
            said, intent = rows.pop()
            said = _sentence(said)
            text = f"{text} {said}".lstrip()
            if intent != "oos":
                query = intent.replace("_", " ").replace("?", "").strip().lower()
                marked.append((query, name, len(text) - len(said), len(text)))
        documents.append(slice_os.Document(name, text))
    return documents, marked


def _utterances(source: Path) -> Iterator[tuple[str, str]]:
    if source.suffix == ".json":
        made = json.loads(source.read_text("utf-8"))
        for part, rows in made.items():
            if part == "train" or part.startswith("oos"):
                yield from ((text, intent) for text, intent in rows)
        return
    with source.open(encoding="utf-8", newline="") as stream:
        yield from ((row["text"], row["category"]) for row in csv.DictReader(stream))


def _sentence(text: str) -> str:
    plain = " ".join(text.split())
    return plain if plain[-1] in ".?!" else f"{plain}."


def _licences(source: Path) -> tuple[list[slice_os.Document], list[Marked]]:
    documents: list[slice_os.Document] = []
    marked: list[Marked] = []
    for line in source.read_text("utf-8").splitlines():
        text = json.loads(line)["text"]
        found = {one.span(1) for kind in (_HEADING, _CAPITALS) for one in kind.finditer(text)}
        name, kept, at, heading = f"l{len(documents):03}", "", 0, ""
        for start, end in [*sorted(found), (len(text), len(text))]:
            if len(text[start:end].split()) > 7 or start < at:
                continue
            body = re.sub(r"[ \t]+", " ", text[at:start])
            if len(body.split()) >= SHORTEST:
                marked += [
                    (query, name, len(kept), len(kept) + len(body))
                    for query, kind in KINDS.items()
                    if heading and re.search(kind, heading)
                ]
            kept, at, heading = kept + body, end, text[start:end].strip().lower()
        documents.append(slice_os.Document(name, kept))
    counts = {query: sum(one[0] == query for one in marked) for query in KINDS}
    return documents, [one for one in marked if counts[one[0]] >= FEWEST]


def _collection(folder: Path) -> tuple[list[slice_os.Document], list[Marked]]:
    collection = read_collection(folder)
    documents = [document for document in collection.documents() if document.text.strip()]
    lengths = {document.id: len(document.text) for document in documents}
    marked: list[Marked] = []
    for query, text in collection.queries.items():
        judged = collection.qrels.relevance[query]
        relevant = [name for name, grade in judged.items() if grade > 0 and name in lengths]
        if len(relevant) >= FEWEST_RELEVANT and len(text.split()) <= LONGEST_QUERY:
            marked += [(" ".join(text.split()), name, 0, lengths[name]) for name in relevant]
    return documents, marked


if __name__ == "__main__":
    main()
