"""Rankings -> measures, through ir_measures: a query that a run misses counts as zero."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from slice_os.errors import EvaluationError, MissingExtraError
from slice_os.evaluation.report import SystemResult
from slice_os.evaluation.runs import Run

DEFAULT_MEASURES = ("nDCG@10", "MAP", "MRR", "Recall@100", "Success@1")


class Judge:
    """Measures runs by the same judgements: query -> document -> relevance."""

    def __init__(self, names: Sequence[str], relevance: Mapping[str, Mapping[str, int]]) -> None:
        """Look the measures up by ir_measures' names (``P(rel=2)@5``) or aliases (``MAP``).

        Raises:
            EvaluationError: ir_measures does not know a measure, or one is named twice.
            MissingExtraError: ir_measures is not installed.
        """
        try:
            import ir_measures
        except ModuleNotFoundError as exc:
            raise MissingExtraError("Evaluating retrieval", "evaluate") from exc
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
        found: Any = self._evaluator.calc({query: dict(ranking) for query, ranking in run.items()})
        values: dict[str, dict[str, float]] = {name: {} for name in self._measures.values()}
        for metric in found.per_query:
            values[self._measures[metric.measure]][metric.query_id] = float(metric.value)
        return SystemResult(
            {name: float(found.aggregated[measure]) for measure, name in self._measures.items()},
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
