"""Retrieval on a test collection: how well each setting of a search ranks the documents."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from slice_os.api import Index
from slice_os.api import open as open_index
from slice_os.encoders import EncoderLike
from slice_os.errors import EvaluationError
from slice_os.ingest.plan import IndexReport
from slice_os.lab.evaluate.collections import (
    Collection,
    Run,
    read_collection,
    read_run,
    run_lines,
    run_name,
)
from slice_os.lab.evaluate.metrics import (
    DEFAULT_MEASURES,
    PER_QUERY,
    REPORT,
    Comparison,
    Metrics,
    RetrievalReport,
    SystemResult,
    write_lines,
    write_report,
)
from slice_os.lab.evaluate.search_settings import (
    PASSAGES,
    SETTINGS,
    Setting,
    parse_setting,
    search_queries,
)
from slice_os.lab.evaluate.significance import holm, load_stats, paired_difference
from slice_os.storage import backend_for
from slice_os.types import Reject


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
    progress: Callable[[str, int, int], object] = lambda stage, done, count: None,
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
        progress: Called with ``indexing`` or a setting's label, how much is done, and of how much.

    Raises:
        EvaluationError: The collection, a run file, a setting or a measure is not usable, or the
            index holds no document of the collection.
        MissingExtraError: ir_measures or scipy is not installed.
    """
    chosen = [parse_setting(text) if isinstance(text, str) else text for text in settings]
    files_of_runs = [str(path) for path in runs]
    names = _names([setting.label for setting in chosen], files_of_runs, baseline)
    if not 1 <= depth <= PASSAGES:
        raise EvaluationError(f"A depth of {depth:,} is not usable: use 1 to {PASSAGES:,}.")
    collection = read_collection(folder, split)
    load_stats()
    metrics = Metrics(measures, collection.qrels.relevance)
    rankings = {name: _judged_run(name, collection) for name in files_of_runs}
    surveyed = survey(collection)
    warnings = list(surveyed.warnings)
    target = Path(output) if output is not None else None
    files: list[Path] = []
    if target is not None:
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise EvaluationError(
                f"{target} cannot be made ({exc.strerror}): give another output folder."
            ) from exc
    if chosen:
        encoding = {"encoder": encoder, "device": device, "threads": threads}
        location = None if index is None else str(index)
        with collection_index(
            location, collection, surveyed, update, warnings.append, progress, **encoding
        ) as opened:
            for setting in chosen:
                rankings[setting.label] = search_queries(
                    opened, collection.queries, setting, depth, progress, warnings.append
                )
                if target is not None:
                    files.append(target / run_name(setting.label))
                    write_lines(files[-1], run_lines(rankings[setting.label], "slice-os"))
    systems = {name: metrics.measure(rankings[name]) for name in names}
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
        t_tests = holm([test.t_test for test in tested])
        randomised = holm([test.randomisation for test in tested])
        for name, test, *corrected in zip(others, tested, t_tests, randomised, strict=True):
            yield Comparison(name, measure, test.mean, test.t_test, test.randomisation, *corrected)


ASKED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Survey:
    """How many documents a collection has, which of them are judged, and warnings."""

    documents: int
    judged: tuple[str, ...]
    warnings: tuple[str, ...]


def survey(collection: Collection) -> Survey:
    """Read all documents once, so that errors come before anything is encoded."""
    lines = collection.qrels.document_lines
    count = 0
    judged: dict[str, None] = {}
    for document in collection.documents():
        count += 1
        if document.id in lines:
            judged[document.id] = None
    if not count:
        raise EvaluationError(f"{collection.folder} holds no document: add some.")
    missing = [document for document in lines if document not in judged]
    if not judged:
        raise EvaluationError(
            f"{collection.qrels.file}, line {lines[missing[0]]}, judges the document "
            f"{missing[0]!r}, and none that it judges is in {collection.folder}: give the "
            "judgements of these documents."
        )
    warnings = [
        f"{len(missing):,} of {len(lines):,} documents that {collection.qrels.file} judges are not "
        f"in the collection and count as never found, {first!r} in line {lines[first]} for one."
        for first in missing[:1]
    ]
    return Survey(count, tuple(judged), tuple(warnings))


@contextmanager
def collection_index(
    location: str | None,
    collection: Collection,
    surveyed: Survey,
    update: bool,
    warn: Callable[[str], object],
    progress: Callable[[str, int, int], object],
    **encoding: Any,
) -> Iterator[Index]:
    """Give an index of the collection: at `location`, or a temporary one.

    An index that does not exist is made; one that exists is used as it is, unless `update` brings
    it up to date. `encoding` are arguments of `slice_os.open`.
    """
    if location is None:
        with (
            tempfile.TemporaryDirectory(prefix="slice-os-") as folder,
            open_index(f"{folder}/collection.slice", **encoding) as index,
        ):
            _add(index, collection, surveyed, warn, progress)
            yield index
        return
    used = False if update else _is_used(location, surveyed, warn)
    with open_index(location, **encoding) as index:
        if not used:
            _add(index, collection, surveyed, warn, progress)
        yield index


def _add(
    index: Index,
    collection: Collection,
    surveyed: Survey,
    warn: Callable[[str], object],
    progress: Callable[[str, int, int], object],
) -> None:
    rejects: list[Reject] = []

    def show(report: IndexReport) -> None:
        done = report.documents + report.unchanged + report.rejected
        progress("indexing", done, surveyed.documents)

    index.add(collection.documents(), on_reject=rejects.append, on_progress=show)
    if rejects:
        warn(
            f"{len(rejects):,} documents could not be indexed and count as never found: "
            f"{rejects[0].place!r} for one, {rejects[0].reason}."
        )


def _is_used(location: str, surveyed: Survey, warn: Callable[[str], object]) -> bool:
    """Tell whether there is an index at a location, and warn of missing documents."""
    backend = backend_for(location).open(location)
    if backend is None:
        return False
    ids = iter(surveyed.judged)
    held = 0
    with closing(backend):
        while some := list(islice(ids, ASKED_AT_ONCE)):
            held += len(backend.stored(some))
    if not held:
        raise EvaluationError(
            f"The index {location} holds none of the documents that are judged",
            hint="give another location, or --update to add the collection.",
        )
    missing = len(surveyed.judged) - held
    if missing:
        warn(
            f"The index {location} misses {missing:,} of {len(surveyed.judged):,} judged "
            "documents, which count as never found: give --update to add them."
        )
    return True
