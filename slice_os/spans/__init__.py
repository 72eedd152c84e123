"""Spans: every run of 1..`max_words` words of a passage, in plain numpy (docs/architecture.md).

SLICE is search with localized, informative context embeddings. Word indices are half-open,
``i < j``; tables of spans are ``[lengths, N]``, by length and start.
"""

from slice_os.spans.bits import PLANES as PLANES
from slice_os.spans.bits import query_planes as query_planes
from slice_os.spans.bits import word_bits as word_bits
from slice_os.spans.cosines import MAX_WORDS as MAX_WORDS
from slice_os.spans.cosines import QueryWords as QueryWords
from slice_os.spans.cosines import contributions as contributions
from slice_os.spans.cosines import cosine as cosine
from slice_os.spans.cosines import degree as degree
from slice_os.spans.cosines import enumerate_spans as enumerate_spans
from slice_os.spans.cosines import fit_window as fit_window
from slice_os.spans.cosines import full_range as full_range
from slice_os.spans.cosines import late_interactions as late_interactions
from slice_os.spans.cosines import length_window as length_window
from slice_os.spans.cosines import own_norms as own_norms
from slice_os.spans.cosines import prefix_sums as prefix_sums
from slice_os.spans.cosines import query_words as query_words
from slice_os.spans.cosines import shared_words as shared_words
from slice_os.spans.cosines import span_cosines as span_cosines
from slice_os.spans.cosines import span_norms as span_norms
from slice_os.spans.cosines import stored_cosines as stored_cosines
from slice_os.spans.cosines import word_scores as word_scores
from slice_os.spans.covering import bounded_cover as bounded_cover
from slice_os.spans.covering import cover as cover
from slice_os.spans.mining_scan import PassageBlock as PassageBlock
from slice_os.spans.mining_scan import PhraseBatch as PhraseBatch
from slice_os.spans.mining_scan import scan_passages as scan_passages
from slice_os.spans.packed import PackedPassage as PackedPassage
from slice_os.spans.packed import best_of_each as best_of_each
from slice_os.spans.packed import common_exponent as common_exponent
from slice_os.spans.packed import dequantize as dequantize
from slice_os.spans.packed import pack_norms as pack_norms
from slice_os.spans.packed import present_norms as present_norms
from slice_os.spans.packed import quantize as quantize
from slice_os.spans.packed import rebase as rebase
from slice_os.spans.packed import unpack_inverse_norms as unpack_inverse_norms
from slice_os.spans.selection import VERBATIM as VERBATIM
from slice_os.spans.selection import EncodedQuery as EncodedQuery
from slice_os.spans.selection import Place as Place
from slice_os.spans.selection import ScoredSpan as ScoredSpan
from slice_os.spans.selection import SpanCosines as SpanCosines
from slice_os.spans.selection import SpanTables as SpanTables
from slice_os.spans.selection import Weights as Weights
from slice_os.spans.selection import best_span as best_span
from slice_os.spans.selection import margin as margin
from slice_os.spans.selection import piece_runs as piece_runs
from slice_os.spans.selection import prepare_queries as prepare_queries
from slice_os.spans.selection import spans_above as spans_above
from slice_os.spans.selection import top_spans as top_spans
