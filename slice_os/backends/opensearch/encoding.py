"""Between records and the bytes of a cluster: JSON, the binary field `words`, ids and stamps."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from opensearchpy.serializer import JSONSerializer

from slice_os.errors import IndexDamagedError
from slice_os.records import Float32, Passage, Words
from slice_os.spans import (
    dequantize,
    own_norms,
    pack_norms,
    quantize,
    span_norms,
    unpack_inverse_norms,
)

_HEADER = struct.Struct("<BBHIhB")
"""Version of this layout, bytes of an offset, dimension, words, exponent of the norms, lengths."""
VERSION = 1


class Serializer(JSONSerializer):
    """opensearch-py's JSON, by orjson."""

    def dumps(self, data: Any) -> Any:
        """Return JSON text; text stays as it is."""
        return data if isinstance(data, str | bytes) else orjson.dumps(data).decode()

    def loads(self, data: Any) -> Any:
        """Return the value of a JSON text."""
        return orjson.loads(data)


def pack_words(words: Words, max_words: int, passage: Passage) -> bytes:
    """Return a passage's words in d + 48 bytes a word (lengths up to 20): the field `words`.

    Their int8 vectors and scales, the norms of their spans (0 for those of the passage's
    neighbours), and their character offsets.
    """
    codes, scales = quantize(words.vectors)
    own = own_norms(span_norms(words.vectors, max_words), words, passage)
    norms, exponent = pack_norms(own)
    offsets = np.stack((words.starts, words.ends))
    width = 2 if offsets.max(initial=0) < 1 << 16 else 4
    head = _HEADER.pack(VERSION, width, codes.shape[1], len(codes), exponent, max_words)
    return b"".join(
        (
            head,
            codes.tobytes(),
            scales.astype("<f4").tobytes(),
            norms.astype("<u2").tobytes(),
            offsets.astype(f"<u{width}").tobytes(),
        )
    )


def unpack_words(text: str) -> tuple[Words, Float32]:
    """Return the words (dequantized) and norms, float32 ``[max_words, N]``, of `pack_words`.

    Raises:
        IndexDamagedError: it is something else.
    """
    try:
        data = base64.b64decode(text)
        version, width, dimension, count, exponent, lengths = _HEADER.unpack_from(data)
        sizes = (count * dimension, 4 * count, 2 * lengths * count, 2 * width * count)
    except (ValueError, struct.error) as exc:
        raise _unreadable(str(exc)) from exc
    if version != VERSION or len(data) != _HEADER.size + sum(sizes):
        raise _unreadable(f"version {version}, {len(data)} bytes")
    parts, start = [], _HEADER.size
    for size, kind in zip(sizes, ("i1", "<f4", "<u2", f"<u{width}"), strict=True):
        parts.append(np.frombuffer(data, kind, size // np.dtype(kind).itemsize, start))
        start += size
    codes, scales, packed, offsets = parts
    packed = packed.reshape(lengths, count)
    inverse = unpack_inverse_norms(packed, exponent)
    starts, ends = offsets.reshape(2, count).astype(np.int32)
    vectors = dequantize(codes.reshape(count, dimension), scales)
    return Words(starts, ends, vectors), np.where(packed > 0, 1 / inverse, 0).astype(np.float32)


def _unreadable(what: str) -> IndexDamagedError:
    return IndexDamagedError(
        f"A passage holds word vectors that this slice-os cannot read ({what}): index again."
    )


def split_metadata(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata that can be indexed, and the rest: Lucene's terms have a longest."""
    short: dict[str, Any] = {}
    long: dict[str, Any] = {}
    for name, value in metadata.items():
        text = json.dumps(value)
        try:
            orjson.dumps(value)
        except TypeError:  # nested too deeply
            long[name] = text
        else:
            fits = name and len(name.encode()) + len(text) <= LONGEST_VALUE
            (short if fits else long)[name] = value
    return short, long


LONGEST_VALUE = 8_000
