"""Make a test collection of a phrase-in-context set, for `slice-os evaluate retrieval`.

    python recipes/context_set.py stsb-dev.tsv long.jsonl --others 6 10
    python recipes/known_item.py long.jsonl known/
    slice-os evaluate retrieval known/ --setting dense --setting dense:late=0 --measure MRR

The passages of the set are the documents. A query is a sentence of which one passage says something
nearly the same among other sentences; relevant is that passage, and every other one that holds the
query or its paraphrase. Collections of abstracts ask what a text is about; this asks where one
sentence is said.
"""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("context", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--least", type=float, default=4.0, show_default=True, help="The least goldsim of a query."
)
def main(context: Path, out: Path, least: float) -> None:
    """Write OUT, a BEIR folder, from CONTEXT, a .jsonl that recipes/context_set.py makes."""
    rows = [json.loads(line) for line in context.read_text(encoding="utf-8").splitlines()]
    passages = [row["passage"].lower() for row in rows]
    asked = [number for number, row in enumerate(rows) if row["goldsim"] >= least]
    judged = ["query-id\tcorpus-id\tscore"]
    for number in asked:
        said = [rows[number][name].strip().rstrip(".").lower() for name in ("line", "paraphrase")]
        judged += [
            f"q{number}\td{other}\t1"
            for other, passage in enumerate(passages)
            if other == number or any(text in passage for text in said)
        ]
    (out / "qrels").mkdir(parents=True, exist_ok=True)
    corpus = [{"_id": f"d{n}", "text": row["passage"]} for n, row in enumerate(rows)]
    queries = [{"_id": f"q{n}", "text": rows[n]["line"]} for n in asked]
    for name, records in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (out / name).write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
    (out / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
