"""Spans: every run of 1..`max_words` words of a passage, in plain numpy (docs/architecture.md).

SLICE is search with localized, informative context embeddings. Word indices are half-open,
``i < j``; tables of spans are ``[lengths, N]``, by length and start.
"""

from slice_os.spans.axes import principal_axes
from slice_os.spans.covering import bounded_cover, cover
from slice_os.spans.enumeration import (
    MAX_WORDS,
    enumerate_spans,
    fit_window,
    full_range,
    length_window,
)
from slice_os.spans.interaction import QueryWords, late_interaction, query_words
from slice_os.spans.norms import prefix_sums, span_norms
from slice_os.spans.packed import PackedPassage
from slice_os.spans.reach import reaching
from slice_os.spans.scores import (
    contributions,
    cosine,
    degree,
    span_cosines,
    stored_cosines,
    word_scores,
)
from slice_os.spans.selection import ScoredSpan, best_span, spans_above, top_spans
from slice_os.spans.sharing import own_norms, shared_words
from slice_os.spans.storage import (
    common_exponent,
    dequantize,
    pack_norms,
    quantize,
    rebase,
    unpack_inverse_norms,
)
from slice_os.spans.verify import pick, verified_degrees

__all__ = [
    "MAX_WORDS",
    "PackedPassage",
    "QueryWords",
    "ScoredSpan",
    "best_span",
    "bounded_cover",
    "common_exponent",
    "contributions",
    "cosine",
    "cover",
    "degree",
    "dequantize",
    "enumerate_spans",
    "fit_window",
    "full_range",
    "late_interaction",
    "length_window",
    "own_norms",
    "pack_norms",
    "pick",
    "prefix_sums",
    "principal_axes",
    "quantize",
    "query_words",
    "reaching",
    "rebase",
    "shared_words",
    "span_cosines",
    "span_norms",
    "spans_above",
    "stored_cosines",
    "top_spans",
    "unpack_inverse_norms",
    "verified_degrees",
    "word_scores",
]
