"""What an evaluation of retrieval found, and the files that hold it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slice_os.evaluation.runs import write_lines

PER_QUERY = "per_query.tsv"
REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class SystemResult:
    """The measures of one ranking of all queries.

    `means` maps a measure to its mean over all judged queries, `per_query` a measure to its value
    for each of them; `missed` counts the queries for which nothing was found: they count as zero.
    """

    means: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]
    missed: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A system's mean of a measure less the baseline's, and how likely chance makes as much.

    `t_test` and `randomisation` are p-values of paired two-sided tests over the queries;
    `t_test_holm` and `randomisation_holm` are corrected for the number of systems compared.
    """

    system: str
    measure: str
    difference: float
    t_test: float
    randomisation: float
    t_test_holm: float
    randomisation_holm: float


@dataclass(frozen=True, slots=True)
class RetrievalReport:
    """What `evaluate_retrieval` found; `systems` maps a setting or a run file to its measures.

    There are no `comparisons` of a single system, nor on a single query.
    """

    collection: str
    index: str | None
    documents: int
    queries: int
    depth: int
    baseline: str
    systems: Mapping[str, SystemResult]
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON types, without the values of single queries."""
        return {
            **asdict(self),
            "systems": {
                name: {"measures": dict(result.means), "missed": result.missed}
                for name, result in self.systems.items()
            },
        }


def write_report(report: RetrievalReport, folder: Path) -> None:
    """Write `PER_QUERY`, a line a system and query, and `REPORT` into a folder.

    Raises:
        EvaluationError: They cannot be written.
    """
    measures = list(next(iter(report.systems.values())).means)
    lines = ["\t".join(["system", "query", *measures])]
    for system, result in report.systems.items():
        for query in result.per_query[measures[0]]:
            values = [repr(result.per_query[measure][query]) for measure in measures]
            lines.append("\t".join([system, query, *values]))
    write_lines(folder / PER_QUERY, lines)
    write_lines(folder / REPORT, [json.dumps(report.to_dict(), ensure_ascii=False, indent=2)])
