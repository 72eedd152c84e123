"""Spans: every run of 1..`max_words` words of a passage, in plain numpy (docs/architecture.md).

SLICE is search with localized, informative context embeddings. Word indices are half-open,
``i < j``; tables of spans are ``[lengths, N]``, by length and start.
"""

from slice_os.spans.covering import bounded_cover as bounded_cover
from slice_os.spans.covering import cover as cover
from slice_os.spans.covering import principal_axes as principal_axes
from slice_os.spans.degrees import Weights as Weights
from slice_os.spans.degrees import margin as margin
from slice_os.spans.late_interaction import QueryWords as QueryWords
from slice_os.spans.late_interaction import late_interaction as late_interaction
from slice_os.spans.late_interaction import late_interactions as late_interactions
from slice_os.spans.late_interaction import query_words as query_words
from slice_os.spans.lengths import MAX_WORDS as MAX_WORDS
from slice_os.spans.lengths import enumerate_spans as enumerate_spans
from slice_os.spans.lengths import fit_window as fit_window
from slice_os.spans.lengths import full_range as full_range
from slice_os.spans.lengths import length_window as length_window
from slice_os.spans.lengths import own_norms as own_norms
from slice_os.spans.lengths import shared_words as shared_words
from slice_os.spans.mining_scan import Aim as Aim
from slice_os.spans.mining_scan import Block as Block
from slice_os.spans.mining_scan import piece_runs as piece_runs
from slice_os.spans.mining_scan import reaching as reaching
from slice_os.spans.norms import prefix_sums as prefix_sums
from slice_os.spans.norms import span_norms as span_norms
from slice_os.spans.packed import PackedPassage as PackedPassage
from slice_os.spans.packed import best_of_each as best_of_each
from slice_os.spans.packed import blocked as blocked
from slice_os.spans.quantization import common_exponent as common_exponent
from slice_os.spans.quantization import dequantize as dequantize
from slice_os.spans.quantization import pack_norms as pack_norms
from slice_os.spans.quantization import present_norms as present_norms
from slice_os.spans.quantization import quantize as quantize
from slice_os.spans.quantization import rebase as rebase
from slice_os.spans.quantization import unpack_inverse_norms as unpack_inverse_norms
from slice_os.spans.scores import contributions as contributions
from slice_os.spans.scores import cosine as cosine
from slice_os.spans.scores import degree as degree
from slice_os.spans.scores import span_cosines as span_cosines
from slice_os.spans.scores import stored_cosines as stored_cosines
from slice_os.spans.scores import word_scores as word_scores
from slice_os.spans.selection import ScoredSpan as ScoredSpan
from slice_os.spans.selection import best_span as best_span
from slice_os.spans.selection import spans_above as spans_above
from slice_os.spans.selection import top_spans as top_spans
from slice_os.spans.tables import VERBATIM as VERBATIM
from slice_os.spans.tables import Cosines as Cosines
from slice_os.spans.tables import Question as Question
from slice_os.spans.tables import SpanTables as SpanTables
from slice_os.spans.tables import questions as questions
