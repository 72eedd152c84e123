"""The verbs of evaluate: one a task, each in a file of its own."""

from __future__ import annotations

from typing import Any

import click

from slice_os.cli.main import LazyGroup

TASKS = {
    "context": "lab.cli.evaluating_encoders",
    "degrees": "lab.cli.evaluating_degrees",
    "opposites": "lab.cli.evaluating_degrees",
    "phrases": "lab.cli.evaluating_encoders",
    "retrieval": "lab.cli.evaluating_retrieval",
    "spans": "lab.cli.evaluating_spans",
    "topics": "lab.cli.evaluating_topics",
}
"""Task -> the module of slice_os that holds its command."""


@click.group(
    cls=LazyGroup,
    modules=TASKS,
    epilog="""\b
Examples:
  slice-os evaluate context pairs.csv
  slice-os evaluate degrees pairs.csv
  slice-os evaluate opposites examples/minimal-pairs.tsv
  slice-os evaluate phrases phrases/ --encoder my-encoder
  slice-os evaluate retrieval scifact/ --index scifact.slice
  slice-os evaluate spans gold.jsonl --index demo.slice
  slice-os evaluate topics conversations.jsonl --label domain
""",
)
def evaluate() -> None:
    """Measure how good an encoder or an index is (docs/evaluation.md)."""


def renamed(**names: str) -> dict[str, Any]:
    """Return the settings of a command whose options had other names, which stay understood."""
    return {"token_normalize_func": lambda name: names.get(name, name)}
