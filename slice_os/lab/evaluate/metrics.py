"""Metrics of rankings, computed by ir_measures, and the report of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slice_os.errors import EvaluationError, needs
from slice_os.files import write_whole
from slice_os.lab.evaluate.collections import Run


def write_lines(file: Path, lines: Iterable[str]) -> None:
    """Write a text file, whole or not at all."""
    try:
        write_whole(file, "".join(f"{line}\n" for line in lines))
    except OSError as exc:
        raise EvaluationError(
            f"{file} cannot be written ({exc.strerror or exc}): give another output folder, or "
            "make room."
        ) from exc


DEFAULT_MEASURES = ("nDCG@10", "MAP", "MRR", "Recall@100", "Success@1")
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


class Metrics:
    """Metrics of runs by the same judgements, query -> document -> relevance.

    A query that a run misses counts as zero.
    """

    def __init__(self, names: Sequence[str], relevance: Mapping[str, Mapping[str, int]]) -> None:
        """Look the measures up by ir_measures' names (``P(rel=2)@5``) or aliases (``MAP``)."""
        with needs("Evaluating retrieval", "evaluate"):
            import ir_measures
        self._measures: dict[Any, str] = {}
        for name in names:
            try:
                measure = ir_measures.parse_measure(name)
                _try(measure)
            except Exception as exc:  # it raises whatever a wrong name comes upon
                raise EvaluationError(
                    f"ir_measures cannot compute the measure {name!r}: choose some as "
                    f"{', '.join(DEFAULT_MEASURES)}."
                ) from exc
            if measure in self._measures:
                raise EvaluationError(f"The measure {name!r} is given twice: leave one out.")
            self._measures[measure] = name
        self._queries = list(relevance)
        self._evaluator = ir_measures.evaluator(list(self._measures), relevance)

    def measure(self, run: Run) -> SystemResult:
        """Return the means over all judged queries, and each query's values."""
        results: Any = self._evaluator.calc(
            {query: dict(ranking) for query, ranking in run.items()}
        )
        values: dict[str, dict[str, float]] = {name: {} for name in self._measures.values()}
        for metric in results.per_query:
            values[self._measures[metric.measure]][metric.query_id] = float(metric.value)
        return SystemResult(
            {name: float(results.aggregated[measure]) for measure, name in self._measures.items()},
            {
                name: {query: of_query[query] for query in self._queries}
                for name, of_query in values.items()
            },
            sum(not run.get(query) for query in self._queries),
        )


def _try(measure: Any) -> None:
    """Raise unless a measure can be computed, also where nothing is found, or all."""
    import ir_measures

    if measure.params.get("cutoff", 1) < 1:
        raise ValueError("a cutoff below 1")  # which ends the process, in trec_eval
    one = {"a": 1, "b": 0}
    run: Run = {"both": {"a": 2.0, "b": 1.0}, "right": {"a": 1.0}, "wrong": {"b": 1.0}, "none": {}}
    judged = dict.fromkeys([*run, "missed"], one)
    found = ir_measures.evaluator([measure], judged).calc(run)
    if not all(math.isfinite(one.value) for one in found.per_query):
        raise ValueError("no number")


def write_report(report: RetrievalReport, folder: Path) -> None:
    """Write `PER_QUERY`, a line a system and query, and `REPORT` into a folder."""
    measures = list(next(iter(report.systems.values())).means)
    lines = ["\t".join(["system", "query", *measures])]
    for system, result in report.systems.items():
        for query in result.per_query[measures[0]]:
            values = [repr(result.per_query[measure][query]) for measure in measures]
            lines.append("\t".join([system, query, *values]))
    write_lines(folder / PER_QUERY, lines)
    write_lines(folder / REPORT, [json.dumps(report.to_dict(), ensure_ascii=False, indent=2)])
