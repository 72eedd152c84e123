"""Retrieval on a test collection: how well each setting of a search ranks the documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from slice_os.calibration.thresholds import load_stats
from slice_os.encoders import EncoderLike
from slice_os.errors import EvaluationError
from slice_os.lab.evaluate.collections import Collection, read_collection
from slice_os.lab.evaluate.files import make_folder, write_lines
from slice_os.lab.evaluate.formats import Run, read_run, run_lines, run_name
from slice_os.lab.evaluate.indexing import collection_index, survey
from slice_os.lab.evaluate.metrics import (
    DEFAULT_MEASURES,
    PER_QUERY,
    REPORT,
    Comparison,
    Metrics,
    RetrievalReport,
    SystemResult,
    write_report,
)
from slice_os.lab.evaluate.searching import (
    PASSAGES,
    SETTINGS,
    EvaluationProgress,
    Setting,
    parse_setting,
    search_queries,
)
from slice_os.lab.evaluate.significance import holm, paired_difference


def evaluate_retrieval(
    folder: str | Path,
    index: str | Path | None = None,
    *,
    settings: Iterable[str | Setting] = SETTINGS,
    encoder: EncoderLike = None,
    device: str = "auto",
    threads: int | None = None,
    depth: int = 100,
    measures: Sequence[str] = DEFAULT_MEASURES,
    runs: Iterable[str | Path] = (),
    baseline: str | None = None,
    output: str | Path | None = None,
    split: str | None = None,
    update: bool = False,
    progress: Callable[[EvaluationProgress], object] = lambda progress: None,
) -> RetrievalReport:
    """Measure how settings of a search, and other systems' run files, rank a test collection.

    A document's score is its best passage's. Means are over all judged queries: one for which a
    system finds nothing counts as zero.

    Args:
        folder: The collection: a BEIR, TREC or SMART folder (`read_collection`).
        index: A location. Where there is no index, the collection is indexed into it; one that is
            there is used as it is. None: an index for this evaluation alone.
        settings: What is compared, in short (`parse_setting`) or as `Setting`.
        encoder: What `slice_os.load_encoder` takes, as are `device` and `threads`.
        device: Where an encoder that is loaded here runs.
        threads: Threads of the encoder; None: all cores.
        depth: Documents of a ranking, at most 1,000.
        measures: Names of ir_measures, or its aliases as MAP.
        runs: TREC run files to measure beside the settings; their paths are their names.
        baseline: The system that the others are compared with; None: the first.
        output: A folder for a run file a setting, the values of each query, and the report. Each
            file is written whole; a run file when its setting is done.
        split: Which of BEIR's qrels; None: ``test``, or the only one.
        update: Add what an index that exists misses of the collection, or has in another form.
        progress: Called with how far it is.

    Raises:
        EvaluationError: The collection, a run file, a setting or a measure is not usable, or the
            index holds no document of the collection.
        MissingExtraError: ir_measures or scipy is not installed.
    """
    chosen = [parse_setting(one) if isinstance(one, str) else one for one in settings]
    runs = list(runs)
    given = {str(path): path for path in runs}
    names = _names([setting.label for setting in chosen], [str(path) for path in runs], baseline)
    if not 1 <= depth <= PASSAGES:
        raise EvaluationError(f"A depth of {depth:,} is not usable: use 1 to {PASSAGES:,}.")
    collection = read_collection(folder, split)
    load_stats()
    metrics = Metrics(measures, collection.qrels.relevance)
    found = {name: _judged_run(path, collection) for name, path in given.items()}
    surveyed = survey(collection)
    warnings = list(surveyed.warnings)
    target = Path(output) if output is not None else None
    files: list[Path] = []
    if target is not None:
        make_folder(target)
    if chosen:
        location = None if index is None else str(index)

        def tell(done: int, total: int) -> None:
            progress(EvaluationProgress("indexing", done, total))

        encoding = {"encoder": encoder, "device": device, "threads": threads}
        with collection_index(
            location, collection, surveyed, update, warnings.append, tell, **encoding
        ) as opened:
            for setting in chosen:
                found[setting.label] = search_queries(
                    opened, collection.queries, setting, depth, progress, warnings.append
                )
                if target is not None:
                    files.append(target / run_name(setting.label))
                    lines = run_lines(found[setting.label], "slice-os")
                    write_lines(files[-1], lines)
    systems = {name: metrics.measure(found[name]) for name in names}
    report = RetrievalReport(
        collection=str(folder),
        index=None if index is None else str(index),
        documents=surveyed.documents,
        queries=len(collection.queries),
        depth=depth,
        baseline=baseline or names[0],
        systems=systems,
        comparisons=tuple(_compare(systems, baseline or names[0], measures)),
        warnings=tuple(warnings),
    )
    if target is not None:
        files += [target / PER_QUERY, target / REPORT]
        report = replace(report, files=tuple(map(str, files)))
        write_report(report, target)
    return report


def _names(labels: list[str], runs: list[str], baseline: str | None) -> list[str]:
    """Return the systems' names; EvaluationError if they, or their files, are not distinct."""
    names = [*labels, *runs]
    if not names:
        raise EvaluationError("Nothing to evaluate: give a setting or a run file.")
    files = [run_name(label).lower() for label in labels]
    for number, name in enumerate(names):
        if names.count(name) > 1 or (number < len(files) and files.count(files[number]) > 1):
            raise EvaluationError(
                f"{name!r} is given twice, or too like another to be told apart: leave one out."
            )
    if baseline is not None and baseline not in names:
        raise EvaluationError(
            f"The baseline {baseline!r} is not compared: choose one of {', '.join(names)}."
        )
    return names


def _judged_run(path: str | Path, collection: Collection) -> Run:
    run = read_run(path)
    if not run.keys() & collection.queries.keys():
        raise EvaluationError(
            f"{path} ranks no query that {collection.qrels.file} judges, its first is "
            f"{next(iter(run))!r}: give a run of this collection."
        )
    return run


def _compare(
    systems: Mapping[str, SystemResult], baseline: str, measures: Sequence[str]
) -> Iterable[Comparison]:
    others = [name for name in systems if name != baseline]
    if len(systems[baseline].per_query[measures[0]]) < 2:
        return
    for measure in measures:
        base = list(systems[baseline].per_query[measure].values())
        tested = [
            paired_difference(list(systems[name].per_query[measure].values()), base)
            for name in others
        ]
        t_tests = holm([one.t_test for one in tested])
        randomised = holm([one.randomisation for one in tested])
        for name, one, t_test, randomisation in zip(
            others, tested, t_tests, randomised, strict=True
        ):
            yield Comparison(
                name, measure, one.mean, one.t_test, one.randomisation, t_test, randomisation
            )
