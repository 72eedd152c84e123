"""Phrase similarity: the tasks of Phrase-BERT (Wang et al. 2021), without a trained classifier.

Phrase-BERT trains a classifier on pairs of vectors where a task is yes or no. Here the encoder is
measured, so yes is a cosine above a threshold; it is chosen on other pairs than those measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slice_os.encoder import EncoderLike, open_encoder
from slice_os.errors import EvaluationError
from slice_os.evaluation.phrase_sets import FILES
from slice_os.evaluation.phrase_tasks import TASKS, Figure
from slice_os.evaluation.significance import load_stats


@dataclass(frozen=True, slots=True)
class PhraseReport:
    """What `evaluate_phrases` found; `absent` are sets whose file is not in the folder."""

    figures: Sequence[Figure]
    absent: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"figures": [asdict(one) for one in self.figures], "absent": list(self.absent)}


def evaluate_phrases(
    folder: str | Path,
    *,
    encoder: EncoderLike = None,
    device: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> PhraseReport:
    """Measure an encoder on the phrase tasks whose files lie in `folder`.

    Args:
        folder: Holds some of bird.txt, turney.txt, ppdb-dev.txt and ppdb-test.txt, paws.tsv,
            pic-ps-train.json and pic-ps-dev.json.
        encoder: What `slice_os.load_encoder` takes.
        device: Where an encoder that is loaded here runs.
        progress: Is told each task as it begins.

    Raises:
        EvaluationError: The folder holds none of the files, or one that is not what it should be.
        MissingExtraError: scipy is not installed, or torch where a checkpoint is given.

    """
    folder = Path(folder)
    sets = {
        name: read(folder / file)
        for name, (file, read) in FILES.items()
        if (folder / file).is_file()
    }
    if not sets:
        files = ", ".join(file for file, _ in FILES.values())
        raise EvaluationError(f"{folder} holds none of {files}: give the folder that has them.")
    load_stats()  # what takes long finds out first that it is missing
    figures: list[Figure] = []
    with open_encoder(encoder, device) as loaded:
        for name, needed, measure in TASKS:
            if all(one in sets for one in needed):
                if progress:
                    progress(name)
                figures += measure(name, loaded, *(sets[one] for one in needed))
    return PhraseReport(figures, [name for name in FILES if name not in sets])
