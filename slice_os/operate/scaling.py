"""What an index of so many words takes, by formulas and measured constants (docs/scaling.md)."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from slice_os.corpus.addable import Addable, as_documents
from slice_os.encoders import EncoderLike, encoder_info, open_encoder
from slice_os.errors import CorpusError, QueryError
from slice_os.operate.estimate import SAMPLE_PASSAGES
from slice_os.spans import PackedPassage, bounded_cover
from slice_os.storage import module_for
from slice_os.text import split
from slice_os.text.splitting import DEFAULT_MAX_WORDS, count_words
from slice_os.types import Passage, Plain

CLUSTER = "https://"
SHARD_BYTES = 40e9
"""Of a shard, as the makers of servers advise (10 to 50 GB),"""
SHARD_DOCUMENTS = 1.5e9
"""and documents of Lucene, spans included, of which a shard has 2^31 at most."""
SEGMENT_BYTES = 5e9
"""The largest segment that the servers merge by themselves."""
BYTE, FLOAT = 1, 4
NODE_CORES = 8


@dataclass(frozen=True, slots=True)
class Text:
    """A corpus, by word; by default what was measured of SciFact, in passages of 110 words at most.

    `spans` are how many a cluster stores at a tolerance, at most 149 a passage; `encoded` words a
    second are of one core.
    """

    passage_words: float = 84.0
    text_bytes: float = 6.9
    spans: tuple[tuple[float, float], ...] = (
        *((0.6, 0.75), (0.7, 0.95), (0.8, 1.28), (0.85, 1.44)),
        *((0.9, 1.56), (0.95, 1.64), (0.98, 1.69)),
    )
    encoded: float = 5573.0


@dataclass(frozen=True, slots=True)
class Constants:
    """What was measured: `python -m benchmarks --only scaling` compares, docs/scaling.md says how.

    Of a word `packed_bytes` are stored beside the codes of its vector. On the disk of OpenSearch
    3.6 lie so many bytes for each that is packed (`cluster_compressed` with the codec
    best_compression) and for each of the text; to a stored vector belong `graph_bytes`, which a
    search reads, and `span_bytes`. Of an embedded index `local_text` lie there for each byte of the
    text. A core of a node takes so many seconds to load a vector and each byte of it, and to merge
    one. `building_bytes` of heap are a vector's while a graph is
    built, by Lucene's data structures; `least_heap` starts a node.
    """

    packed_bytes: float = 95.0
    cluster_packed: float = 4 / 3
    cluster_compressed: float = 0.98
    cluster_text: float = 2.8
    graph_bytes: float = 28.0
    span_bytes: float = 18.0
    local_text: float = 3.4
    vector_seconds: float = 2.1e-4
    byte_seconds: float = 2.7e-7
    merging_seconds: float = 4.8e-4
    building_bytes: float = 350.0
    least_heap: float = 512e6


MEASURED = Constants()


@dataclass(frozen=True, slots=True)
class ScalePlan(Plain):
    """What an index of `words` takes; bytes and hours, of a cluster and of an embedded index.

    Of a cluster `vectors` are those of one copy, `disk` and `off_heap` those of all copies, `heap`
    is of one node while it merges its largest segment. `off_heap` is what searches read, which the
    system should be able to keep in memory.
    """

    words: int
    passages: int
    tolerance: float
    dimensions: int
    vector_type: str
    replicas: int
    shards: int
    node_cores: int
    cores: int
    vectors: int
    disk: int
    heap: int
    off_heap: int
    hours_encoding: float
    hours_loading: float
    hours_merging: float
    embedded_disk: int
    embedded_off_heap: int


def plan(
    words: float | None = None,
    *,
    corpus: Iterable[Addable] | None = None,
    cluster: Mapping[str, Any] | None = None,
    passage_words: int | None = None,
    cores: int | None = None,
    node_cores: int = NODE_CORES,
    encoder: EncoderLike = None,
    device: str = "auto",
    threads: int | None = None,
) -> ScalePlan:
    """Return what an index takes, before anything is made.

    >>> slice_os.plan(1e9, cluster={"tolerance": 0.9, "dimensions": 192}).shards
    26

    Args:
        words: How many words there will be; None: those of the corpus.
        corpus: Documents (`slice_os.read`), or a sample of them. They are read, and some passages
            encoded, so that the plan is of these texts and this machine.
        cluster: How the index is made in a cluster (`slice_os.ClusterSettings`).
        passage_words: The most words of a passage.
        cores: That encode, on all machines together; None for those of this one.
        node_cores: Of the data nodes, all together.
        encoder: See `slice_os.load_encoder`; only loaded for a corpus.
        device: See `slice_os.load_encoder`.
        threads: See `slice_os.load_encoder`.

    Raises:
        QueryError: nothing says how many words there are, or a setting is out of its range.
        CorpusError: the corpus holds no text.
    """
    layout = module_for(CLUSTER, "settings").Layout(**(cluster or {}))
    dimension = encoder_info(encoder).dimension
    dimensions = layout.dimensions or dimension
    if words is None and corpus is None:
        raise QueryError("Say how many words there will be, or give a corpus.")
    if (words is not None and not 1 <= words < 1e15) or node_cores < 1 or dimensions > dimension:
        raise QueryError(
            "words have to be from 1 to 1e15, node_cores at least 1, dimensions at most "
            f"{dimension}."
        )
    if layout.engine not in ("", "lucene", "hnsw"):
        raise QueryError(f"What the engine {layout.engine} takes was not measured: leave it out.")
    if layout.codec not in ("default", "best_compression"):
        raise QueryError(f"What the codec {layout.codec} takes was not measured: leave it out.")
    most, text = passage_words or DEFAULT_MAX_WORDS, Text()
    cores = cores or os.cpu_count() or 1
    if corpus is not None:
        with open_encoder(encoder, device, threads) as loaded:
            found, text = _looked_at(corpus, loaded, layout.tolerance, most, cores)
        words = words or found
    elif most != DEFAULT_MAX_WORDS:
        text = replace(text, passage_words=text.passage_words * most / DEFAULT_MAX_WORDS)
    return _planned(float(words or 0), text, layout, dimension, dimensions, cores, node_cores)


def _planned(
    words: float,
    text: Text,
    layout: Any,
    dimension: int,
    dimensions: int,
    cores: int,
    node_cores: int,
    known: Constants = MEASURED,
) -> ScalePlan:
    tolerances, spans = zip(*text.spans, strict=True)
    vectors = words * float(np.interp(layout.tolerance, tolerances, spans))
    size = dimensions * (BYTE if layout.vector_type == "byte" else FLOAT)
    searched = vectors * (size + known.graph_bytes)
    packed = dimension + known.packed_bytes
    per_packed = (
        known.cluster_compressed if layout.codec == "best_compression" else known.cluster_packed
    )
    disk = (
        searched
        + vectors * known.span_bytes
        + words * (known.cluster_text * text.text_bytes + per_packed * packed)
    )
    passages = words / text.passage_words
    shards = max(
        layout.shards,
        math.ceil(disk / SHARD_BYTES),
        math.ceil((vectors + passages) / SHARD_DOCUMENTS),
    )
    copies = 1 + layout.replicas
    merged = min(SEGMENT_BYTES, disk / shards) / disk * vectors
    taking = vectors * (known.vector_seconds + known.byte_seconds * size)
    local = words * (packed + dimension / 8 + 1)  # a bit a dimension, and how well they fit
    return ScalePlan(
        words=round(words),
        passages=round(passages),
        tolerance=layout.tolerance,
        dimensions=dimensions,
        vector_type=layout.vector_type,
        replicas=layout.replicas,
        shards=shards,
        node_cores=node_cores,
        cores=cores,
        vectors=round(vectors),
        disk=round(disk * copies),
        heap=round(known.least_heap + merged * known.building_bytes),
        off_heap=round(searched * copies),
        hours_encoding=words / text.encoded / cores / 3600,
        hours_loading=taking / node_cores / 3600,
        hours_merging=vectors * known.merging_seconds * copies / node_cores / 3600,
        embedded_disk=round(local + words * known.local_text * text.text_bytes),
        embedded_off_heap=round(local),
    )


def _looked_at(
    corpus: Iterable[Addable], encoder: Any, tolerance: float, most: int, cores: int
) -> tuple[int, Text]:
    """Return how many words a corpus has, and what they are like, by passages at random."""
    rng = random.Random(0)
    drawn: list[Passage] = []
    words = characters = passages = 0
    for document in as_documents(corpus):
        for passage in split(document, most):
            passages += 1
            words += count_words(passage.text[passage.before :])
            characters += len(passage.text.encode())
            if len(drawn) < SAMPLE_PASSAGES:
                drawn.append(passage)
            elif (place := rng.randrange(passages)) < SAMPLE_PASSAGES:
                drawn[place] = passage
    if not words:
        raise CorpusError("The corpus holds no text: give files that do.")
    encode = encoder.encode_words
    list(encode(passage.text for passage in islice(drawn, 4)))  # the first take longer
    began = time.monotonic()
    encoded = list(encode(passage.text for passage in drawn))
    took = time.monotonic() - began
    packed = [
        PackedPassage.pack(held, 20, passage)
        for held, passage in zip(encoded, drawn, strict=True)
        if len(held)
    ]
    spans = module_for(CLUSTER, "passages").MOST_SPANS
    kept = sum(len(bounded_cover(item.vectors, tolerance, spans)[0]) for item in packed)
    sampled = sum(map(len, packed)) or 1
    rate = sampled / max(took, 1e-9) / (os.cpu_count() or 1)
    return words, Text(words / passages, characters / words, ((0.0, kept / sampled),), rate)
