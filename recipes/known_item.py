"""Make a test collection of a phrase-in-context set, for `slice-os evaluate retrieval`.

    python recipes/context_set.py stsb-dev.tsv long.jsonl --others 6 10
    python recipes/known_item.py long.jsonl known/
    slice-os evaluate retrieval known/ --setting dense --setting dense:late=0 --measure MRR
    slice-os index known/corpus.jsonl --index known.slice
    slice-os evaluate spans known/spans.jsonl --index known.slice

A query is a sentence of which a passage says something nearly the same among other sentences;
relevant is that passage, and every other one that holds its words. Passages that hold a query
itself are no documents: any comparison of words would find them. Collections of abstracts ask
what a text is about; this asks where one sentence is said, and spans.jsonl marks it.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from slice_os.lab.evaluate.scorers import find_words


def _bare(sentence: str) -> str:
    return sentence.strip().rstrip(".").lower()


@click.command()
@click.argument("context", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--least", type=float, default=4.0, show_default=True, help="The least goldsim of a query."
)
def main(context: Path, out: Path, least: float) -> None:
    """Write OUT, a BEIR folder and spans.jsonl, of a .jsonl that recipes/context_set.py makes."""
    rows = [json.loads(line) for line in context.read_text(encoding="utf-8").splitlines()]
    passages = [row["passage"].lower() for row in rows]
    texts = [[_bare(row["line"]), _bare(row["paraphrase"])] for row in rows]
    queries = {texts[n][0] for n, row in enumerate(rows) if row["goldsim"] >= least}
    kept = [n for n, said in enumerate(passages) if not any(query in said for query in queries)]
    asked = [n for n in kept if rows[n]["goldsim"] >= least]
    judged = ["query-id\tcorpus-id\tscore"]
    marked = []
    for number in asked:
        for n in (n for n in kept if texts[number][1] in passages[n]):
            judged.append(f"q{number}\td{n}\t1")
            if found := find_words(rows[n]["passage"], texts[number][1]):
                place = dict(zip(("start", "end"), found, strict=True))
                marked.append({"query": rows[number]["line"], "document": f"d{n}", **place})
    (out / "qrels").mkdir(parents=True, exist_ok=True)
    files = {
        "corpus.jsonl": [{"_id": f"d{n}", "text": rows[n]["passage"]} for n in kept],
        "queries.jsonl": [{"_id": f"q{n}", "text": rows[n]["line"]} for n in asked],
        "spans.jsonl": marked,
    }
    for name, records in files.items():
        (out / name).write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
    (out / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
