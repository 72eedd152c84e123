"""The phrase tasks' published files, and the lexical diversity of paraphrases and neighbours."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import regex

from slice_os.corpus.data_files import field, numbered_lines, open_bytes, read_unquoted, score
from slice_os.encoders import Encoder
from slice_os.errors import EvaluationError, needs


@dataclass(frozen=True, slots=True)
class PhrasePair:
    """Two phrases and their similarity: a score, or 1 and 0 for yes and no.

    `contexts` are sentences that contain the phrases, where a set has them.
    """

    first: str
    second: str
    score: float
    contexts: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A bigram and the words to choose from; the first is the answer, then its two components."""

    phrase: str
    choices: tuple[str, ...]


def read_bird(path: Path) -> list[PhrasePair]:
    """Read BiRD (Asaadi et al. 2019): tab-separated, with ``term1``, ``term2`` and a score."""
    rows = read_unquoted(path, ("term1", "term2", "relatedness score"), (0, 1))
    return [PhrasePair(*row) for row in rows]


def read_turney(path: Path) -> list[Choice]:
    """Read Turney (2012): ``bigram | answer | component | component | ...`` a line."""
    choices = []
    for number, text in numbered_lines(path):
        fields = [part.strip() for part in text.split("|")]
        if len(fields) < 5 or not all(fields):
            raise EvaluationError(
                f"{path}, line {number}, is not a bigram, its answer, two components and other "
                "words, separated by |: give the published file."
            )
        choices.append(Choice(fields[0], tuple(fields[1:])))
    return choices


def read_ppdb(path: Path) -> list[PhrasePair]:
    """Read PPDB pairs: ``phrase|||phrase|||score`` a line, scores from 1 to 5."""
    pairs = []
    for line, text in numbered_lines(path):
        columns = ("phrase", "paraphrase", "score")
        row = dict(zip(columns, text.split("|||"), strict=False))
        first, second = (field(path, line, row, (name,)) for name in columns[:2])
        pairs.append(PhrasePair(first, second, score(path, line, row, columns[2:], (0, 5))))
    return pairs


def read_pic(path: Path) -> list[PhrasePair]:
    """Read PiC phrase similarity (Pham et al. 2023): JSON, label positive or negative."""
    try:
        with open_bytes(path) as stream:
            rows = json.loads(stream.read())["data"]
        return [
            PhrasePair(
                row["phrase1"],
                row["phrase2"],
                float({"positive": 1, "negative": 0}[str(row["label"]).lower()]),
                (row["sentence1"], row["sentence2"]),
            )
            for row in rows
        ]
    except (ValueError, KeyError, TypeError) as exc:
        raise EvaluationError(
            f"{path} is not PiC-PS's JSON ({type(exc).__name__}: {exc}): give the published file."
        ) from exc


def read_paws(path: Path, max_words: int = 10) -> list[PhrasePair]:
    """Read PAWS (Zhang et al. 2019): TSV with sentence1, sentence2, label; short pairs alone."""
    rows = read_unquoted(path, ("sentence1", "sentence2", "label"), (0, 1))
    return [
        PhrasePair(first, second, label)
        for first, second, label in rows
        if max(len(first.split()), len(second.split())) <= max_words
    ]


FILES: Mapping[str, tuple[str, Callable[[Path], list[Any]]]] = {
    "bird": ("bird.txt", read_bird),
    "turney": ("turney.txt", read_turney),
    "ppdb-train": ("ppdb-train.txt", read_ppdb),
    "ppdb-dev": ("ppdb-dev.txt", read_ppdb),
    "ppdb-test": ("ppdb-test.txt", read_ppdb),
    "paws": ("paws.tsv", read_paws),
    "pic-train": ("pic-ps-train.json", read_pic),
    "pic-dev": ("pic-ps-dev.json", read_pic),
}
"""Set -> the name of its file in a folder, and its reader."""


_TOKEN = regex.compile(r"[\p{L}\p{N}]+")
NEAREST, PHRASES, SEED = 10, 1_000, 42
_BLOCK = 200


@dataclass(frozen=True, slots=True)
class Diversity:
    """Lexical diversity as in Wang et al. (2021), section 5.3: means over phrases.

    Attributes:
        new_tokens: Distinct tokens of a phrase's neighbours that it does not have, divided by the
            number of its own.
        lcs_precision: The longest common substring of a phrase and a neighbour, in characters,
            divided by the neighbour's; less is more diverse.
        levenshtein: Edit distance of a phrase and a neighbour, in characters.
    """

    new_tokens: float
    lcs_precision: float
    levenshtein: float


def lexical_diversity(groups: Sequence[tuple[str, Sequence[str]]]) -> Diversity:
    """Return the lexical diversity of phrases, each with its neighbours or paraphrases.

    Case does not count; tokens are runs of letters and digits.

    Raises:
        EvaluationError: There is no phrase, or one without neighbours.
        MissingExtraError: rapidfuzz is not installed.
    """
    if not groups or not all(others for _, others in groups):
        raise EvaluationError("There is no phrase to compare, or one has nothing beside it.")
    with needs("Measuring diversity", "evaluate"):
        from rapidfuzz.distance import Levenshtein
    rows = []
    for phrase, others in groups:
        one, rest = phrase.lower(), [other.lower() for other in others]
        own = _TOKEN.findall(one)
        new = {token for other in rest for token in _TOKEN.findall(other)} - set(own)
        rows.append(
            (
                len(new) / max(1, len(own)),
                fmean(_common(one, other) / max(1, len(other)) for other in rest),
                fmean(Levenshtein.distance(one, other) for other in rest),
            )
        )
    return Diversity(*np.mean(rows, axis=0).tolist())


def neighbour_diversity(encoder: Encoder, vocabulary: Sequence[str]) -> Diversity:
    """Return the diversity of the ten nearest neighbours of 1,000 random phrases of a vocabulary.

    Nearest is the highest cosine; phrases have at least two words.

    Raises:
        EvaluationError: The vocabulary has no phrase, or ten words and phrases or fewer.
        MissingExtraError: rapidfuzz is not installed.
    """
    known = list(dict.fromkeys(vocabulary))
    phrases = [row for row, text in enumerate(known) if len(text.split()) > 1]
    if not phrases or len(known) <= NEAREST:
        raise EvaluationError(
            f"A vocabulary of {len(known)} words and phrases is too small: give more than "
            f"{NEAREST}, among them phrases of two words or more."
        )
    chosen = np.random.default_rng(SEED).permutation(phrases)[:PHRASES]
    vectors = encoder.encode(known)
    groups = []
    for start in range(0, len(chosen), _BLOCK):
        rows = chosen[start : start + _BLOCK]
        cosines = vectors[rows] @ vectors.T
        cosines[np.arange(len(rows)), rows] = -np.inf
        for row, near in zip(rows, np.argpartition(-cosines, NEAREST)[:, :NEAREST], strict=True):
            groups.append((known[row], [known[k] for k in near]))
    return lexical_diversity(groups)


def _common(one: str, other: str) -> int:
    """Return the length of the longest common substring."""
    return SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size
