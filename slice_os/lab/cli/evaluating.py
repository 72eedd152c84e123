"""The verbs of evaluate: one a task, each in a file of its own."""

from __future__ import annotations

from typing import Any

import click

from slice_os.cli.main import LazyGroup

TASKS = {
    "context": "evaluating_encoders",
    "degrees": "evaluating_degrees",
    "opposites": "evaluating_degrees",
    "phrases": "evaluating_encoders",
    "retrieval": "evaluating_retrieval",
    "spans": "evaluating_spans",
    "topics": "evaluating_topics",
}
"""Task -> the module of slice_os.cli that holds its command."""


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
