"""Whether an index fits an encoder, and its documents are whole."""

from __future__ import annotations

from slice_os.backends.base import IndexMeta
from slice_os.diagnosis.findings import Notes
from slice_os.encoder.info import EncoderInfo


def fit(notes: Notes, meta: IndexMeta, info: EncoderInfo) -> None:
    """Say what made an index, and whether an encoder fits it."""
    notes.facts |= {
        "format": meta.format,
        "encoder": meta.encoder,
        "family": meta.family,
        "dimension": meta.dimension,
        "max_words": meta.max_words,
        "passage_words": meta.passage_words,
    }
    if meta.family == info.family:
        notes.find("ok", f"The encoder {info.name} fits the index.")
        return
    notes.find(
        "error",
        f"The index was made by the encoder {meta.encoder} (family {meta.family[:12]}, "
        f"{meta.dimension} dimensions), not by {info.name} (family {info.family[:12]}, "
        f"{info.dimension} dimensions)",
        "give that encoder's folder with --encoder, or index to a new location.",
    )


def complete(notes: Notes, documents: int, incomplete: int) -> None:
    """Say whether every document of an index is whole."""
    if incomplete:
        notes.find(
            "warning",
            f"Incomplete documents: {incomplete:,} (a run was broken off, or is under way)",
            "run the same 'slice-os index' again, and it goes on.",
        )
    elif documents:
        notes.find("ok", "Every document is complete.")
    else:
        notes.find("notice", "The index is empty", "fill it with 'slice-os index'.")
