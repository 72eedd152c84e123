"""The records that backends take and return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from slice_os.encoders import EncoderInfo
from slice_os.errors import EncoderMismatchError
from slice_os.spans import PackedPassage, PhraseBatch
from slice_os.text.filters import Condition
from slice_os.types import Float32, Metadata, Passage, Plain

if TYPE_CHECKING:
    from slice_os.spans import QueryWords

Mode = Literal["hybrid", "dense", "lexical"]
Order = Literal["degree"]
"""What hits and matches may be sorted by, highest first."""
FORMAT = 2
SHORT_SPANS = 3
"""The shortest span that counts for a query of five words."""


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """Immutable index metadata."""

    encoder: str
    weights_hash: str
    dimension: int
    max_words: int = 20
    passage_words: int = 110
    format: int = FORMAT
    store: tuple[str, ...] | None = None
    """The fields of metadata that a hit brings along, None for all; filters know all of them."""
    phrase_head: str = ""
    """The hash of the phrase head whose norms are stored (`EncoderInfo.phrase_head`)."""

    def check_encoder(self, location: str, info: EncoderInfo) -> None:
        """Raise EncoderMismatchError unless the index was made by an encoder of these weights."""
        if self.weights_hash != info.weights_hash:
            raise EncoderMismatchError(
                f"The index {location} was made by the encoder {self.encoder} (weights "
                f"{self.weights_hash[:12]}), not by {info.name} (weights "
                f"{info.weights_hash[:12]}): give that encoder's folder, or index to a new "
                "location."
            )

    def stored(self, metadata: Metadata) -> Metadata:
        """Return what a hit brings along of metadata."""
        if self.store is None:
            return metadata
        kept = tuple(f"{name}." for name in self.store)
        return {
            name: value
            for name, value in metadata.items()
            if name in self.store or name.startswith(kept)
        }


@dataclass(frozen=True, slots=True)
class IndexStatus(Plain):
    """The size and state of an index."""

    location: str
    backend: str
    meta: IndexMeta
    documents: int
    passages: int
    words: int
    bytes: int
    details: dict[str, Any] = field(default_factory=dict)


BEGUN = {"state": "building"}
"""What is noted of a generation from its first moment on; without a note it would be retired."""


@dataclass(frozen=True, slots=True)
class Generation(Plain):
    """One of the indexes behind a location: it is searched, or was, or is to be.

    `state` is ``live``, ``building``, ``ready`` to be made live, ``retired``, or ``rolled back``
    from, which nobody goes back to; `build` says who builds one that is not live, where, since when
    and how far, and which documents of a retired one are not whole.
    """

    number: int
    state: str
    meta: IndexMeta
    settings: dict[str, Any]
    documents: int
    bytes: int
    made: str
    build: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class StoredPassage:
    """A passage as an index holds it, with the metadata of its document."""

    passage: Passage
    metadata: Metadata
    packed: PackedPassage


@dataclass(frozen=True, slots=True, eq=False)
class SearchQuery:
    """What a backend is to find the candidates of.

    Attributes:
        text: The query; for BM25.
        vector: Its unit vector, float32 ``[d]``.
        lengths: The span lengths it is compared with.
        ranks: Which ranks to return.
        depth: How many passages of each ranking a hybrid search fuses.
        reach: The last rank that this search may be asked for: ranks that are asked for one after
            the other, with the same reach, are cut from one sequence.
        words: The words of the query, for late interaction.
        late: The share of late interaction in the dense score (`search.rerank`).
    """

    text: str
    vector: Float32
    lengths: range
    mode: Mode = "hybrid"
    fusion: str = "saturation"
    weight: float | None = None
    filters: Sequence[Condition] = ()
    ranks: range = range(10)
    depth: int = 1000
    reach: int = 10
    words: QueryWords | None = None
    late: float = 0.0

    @property
    def is_short(self) -> bool:
        """Whether spans so short are compared that much is near to the query."""
        return self.lengths.start <= SHORT_SPANS


@dataclass(frozen=True, slots=True, eq=False)
class MiningQuery:
    """Phrases, and how near to one of them a span has to be.

    Attributes:
        phrases: The phrases and their thresholds.
        filters: What the passages have to meet.
        graph: Let an approximate index say which passages to read, by their vectors in context
            alone, where there is one; else every word is read.
    """

    phrases: PhraseBatch
    filters: Sequence[Condition] = ()
    graph: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A passage that was found, the score that ranks it, and its BM25 score, if it has one."""

    score: float
    stored: StoredPassage
    bm25: float | None = None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What is known of a document before it is indexed again."""

    hash: str | None
    """None while its indexing is not complete."""
    passages: Counter[str] = field(default_factory=Counter)
    """How many stored passages have each passage hash, those of a broken-off run included."""
