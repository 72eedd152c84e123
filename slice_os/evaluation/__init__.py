"""Evaluation: how good an encoder or an index is, on sets from papers and on one's own.

Names are looked up when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slice_os.lazy import lazy_names

if TYPE_CHECKING:
    from slice_os.evaluation.building import BuildReport, build_context
    from slice_os.evaluation.calibration import Calibration, calibrate
    from slice_os.evaluation.context import ContextReport, evaluate_context, plot_context
    from slice_os.evaluation.correlation import compare, correlate, williams_test
    from slice_os.evaluation.diversity import lexical_diversity
    from slice_os.evaluation.endpoint import Endpoint
    from slice_os.evaluation.labels import draw_sample, is_labelled, labels_from_gold, read_labels
    from slice_os.evaluation.phrases import PhraseReport, evaluate_phrases
    from slice_os.evaluation.report import RetrievalReport
    from slice_os.evaluation.retrieval import evaluate_retrieval
    from slice_os.evaluation.spans import SpanReport, evaluate_spans

__all__ = [
    "BuildReport",
    "Calibration",
    "ContextReport",
    "Endpoint",
    "PhraseReport",
    "RetrievalReport",
    "SpanReport",
    "build_context",
    "calibrate",
    "compare",
    "correlate",
    "draw_sample",
    "evaluate_context",
    "evaluate_phrases",
    "evaluate_retrieval",
    "evaluate_spans",
    "is_labelled",
    "labels_from_gold",
    "lexical_diversity",
    "plot_context",
    "read_labels",
    "williams_test",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
