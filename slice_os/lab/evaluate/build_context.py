"""Building a phrase-in-context set: a language model writes passages, people confirm them."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from string import ascii_uppercase
from typing import Any

from slice_os.calibration.labels import read_label
from slice_os.corpus.data_files import field, read_rows, score
from slice_os.errors import EvaluationError
from slice_os.files import whole
from slice_os.lab.evaluate.language_model import Answers, Endpoint, Row
from slice_os.lab.evaluate.metrics import write_lines
from slice_os.lab.evaluate.scorers import find_words
from slice_os.text import count_words

FIRST, SECOND = ("phrase", "sentence1", "line", "query"), ("paraphrase", "sentence2", "target")
SCORE = ("score", "goldsim", "gold")
PROMPT = (
    "Please provide a context to the given phrase, insert it into a long sentence, place it as "
    "part of the larger sentence and use the phrase verbatim. The sentence should also start with "
    "the letter {letter} the phrase is: {paraphrase}"
)
"""Orbach et al. (2023), section 4.2."""
LENGTH = "Write {low} to {high} words. "
FIELDS = ("phrase", "paraphrase", "letter", "low", "high")


@dataclass(frozen=True, slots=True)
class WantedPassage:
    """A pair that needs a passage."""

    phrase: str
    paraphrase: str
    score: float


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What `build_context` did: `failures` counts pairs without a passage by reason."""

    pairs: int
    built: int
    known: int
    failures: Mapping[str, int]


def build_context(
    pairs: str | Path,
    out: str | Path,
    endpoint: Endpoint,
    *,
    prompt: str | None = None,
    words: tuple[int, int] | None = None,
    attempts: int = 1,
    workers: int = 4,
    max_score: float = 5.0,
    progress: Callable[[int, int, Mapping[str, int]], None] | None = None,
) -> BuildReport:
    """Ask a language model for a passage around each pair's paraphrase, and check it.

    Args:
        pairs: A .csv, .tsv or .jsonl with the columns phrase, paraphrase and score (or sentence1,
            sentence2, score).
        out: The .jsonl to write, for `slice-os evaluate context`; what it holds is kept. Beside
            it, OUT.about.json says the model and the prompt.
        endpoint: The model.
        prompt: With {paraphrase}, and perhaps {phrase}, {letter} (a random one of A to Z, the same
            for a pair each time), {low} and {high}; `PROMPT` if None.
        words: Minimum and maximum words of a passage; any if None.
        attempts: Requests for each passage until one passes the check; as published, one.
        workers: How many pairs are asked for at once.
        max_score: The maximum score.
        progress: Is told how many pairs are done of how many, and the failures.

    Raises:
        EvaluationError: The pairs cannot be read, the prompt is not one, the output belongs to
            another prompt or model or cannot be written, or the endpoint refuses.
    """
    prompt = prompt or (LENGTH + PROMPT if words else PROMPT)
    _check_prompt(prompt, words)
    if words and not 1 <= words[0] <= words[1]:
        raise EvaluationError(f"A passage of {words[0]} to {words[1]} words cannot be had.")
    wanted = list(_read(pairs, max_score))
    if not wanted:
        raise EvaluationError(f"{pairs} holds no pair: give a file with rows below its header.")
    about = {"model": endpoint.model, "prompt": prompt, "words": words and list(words)}
    answers = Answers(out, about)
    known = set(answers.fields("line", "paraphrase"))
    rest = [pair for pair in wanted if (pair.phrase, pair.paraphrase) not in known]

    def build(pair: WantedPassage) -> tuple[Row | None, str]:
        passage, reason = _passage(endpoint, pair, prompt, words, attempts)
        row = {
            "line": pair.phrase,
            "paraphrase": pair.paraphrase,
            "passage": passage,
            "goldsim": pair.score,
        }
        return row if passage else None, reason

    def show(built: int, failures: Mapping[str, int]) -> None:
        if progress:
            progress(len(known) + built + sum(failures.values()), len(wanted), failures)

    built, failures = answers.ask(rest, build, workers, show)
    return BuildReport(len(wanted), built, len(known), dict(failures))


def _check_prompt(prompt: str, words: tuple[int, int] | None) -> None:
    """Raise unless the prompt's fields are known and have a value."""
    known = {**dict.fromkeys(FIELDS[:3], "A"), **(dict.fromkeys(FIELDS[3:], 1) if words else {})}
    try:
        prompt.format(**known)
    except (LookupError, AttributeError, ValueError) as exc:
        raise EvaluationError(
            f"The prompt is not usable ({exc})",
            hint=(
                "use the fields "
                f"{', '.join(f'{{{name}}}' for name in known)}, and {{{{ and }}}} for braces"
                f"{'' if words else '; --words gives {low} and {high} a value'}."
            ),
        ) from exc
    if "{paraphrase}" not in prompt:
        raise EvaluationError("The prompt does not say {paraphrase}: add it.")


def _passage(
    endpoint: Endpoint,
    pair: WantedPassage,
    prompt: str,
    words: tuple[int, int] | None,
    attempts: int,
) -> tuple[str, str]:
    """Return a passage that passes the check, or "" and why the last one did not."""
    low, high = words or (1, sys.maxsize)
    # Uniform over A to Z, and the same when a run goes on.
    letter = Random(f"{pair.phrase}\n{pair.paraphrase}").choice(ascii_uppercase)
    request = prompt.format(
        phrase=pair.phrase, paraphrase=pair.paraphrase, letter=letter, low=low, high=high
    )
    reason = ""
    for _ in range(attempts):
        text = " ".join(endpoint.complete(request).split()).strip('"“”')
        if not find_words(text, pair.paraphrase):
            reason = "without the paraphrase"
        elif not low <= count_words(text) <= high:
            reason = f"not of {low} to {high} words"
        elif count_words(text) <= count_words(pair.paraphrase):
            reason = "nothing but the paraphrase"
        else:
            return text, ""
    return "", reason


def _read(path: str | Path, max_score: float) -> Iterator[WantedPassage]:
    for line, values in read_rows(path):
        first, second = (field(path, line, values, names) for names in (FIRST, SECOND))
        gold = score(path, line, values, SCORE, (0.0, max_score))
        paraphrase = " ".join(second.split()).rstrip(" .")
        if not paraphrase:
            raise EvaluationError(f"{path}, line {line}, has no word in {second!r}: correct it.")
        yield WantedPassage(" ".join(first.split()), paraphrase, gold)


ANSWER = "confirmed"
COLUMNS = ("line", "paraphrase", "passage", "goldsim")


@dataclass(frozen=True, slots=True)
class AnnotationReport:
    """What `read_sheets` found: how many rows everybody confirmed, any refused, or some left."""

    confirmed: int
    refused: int
    unanswered: int


def write_sheet(context: str | Path, sheet: str | Path) -> int:
    """Write the rows of a set of `build_context` to a .csv to answer, and return how many.

    People write yes or no into its first column, `ANSWER`: is the similarity of line and paraphrase
    still goldsim, where the paraphrase stands in the passage?
    """
    path = Path(sheet)
    if path.suffix.lower() != ".csv":
        raise EvaluationError(f"{path} must end in .csv: people write their answers into it.")
    rows = [[str(values.get(name, "")) for name in COLUMNS] for _, values in read_rows(context)]
    try:
        with whole(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file)
            out.writerow([ANSWER, *COLUMNS])
            out.writerows(["", *row] for row in rows)
    except OSError as exc:
        raise EvaluationError(f"{path} cannot be written ({exc.strerror}): make room.") from exc
    return len(rows)


def read_sheets(
    context: str | Path, sheets: Sequence[str | Path], out: str | Path
) -> AnnotationReport:
    """Write the rows of a set that are confirmed on all `sheets`, one a person, to a .jsonl."""
    rows = [dict(values) for _, values in read_rows(context)]
    answers: list[set[bool | None]] = [set() for _ in rows]
    for sheet in sheets:
        given = {}
        for line, values in read_rows(sheet):
            given[_key(values)] = read_label(sheet, line, values, ANSWER)
        if strange := given.keys() - set(map(_key, rows)):
            raise EvaluationError(
                f"{sheet} has {len(strange)} rows that {context} does not have: give the sheet "
                "that was made of it."
            )
        if not any(answer is not None for answer in given.values()):
            raise EvaluationError(f"{sheet} has no answer: write yes or no into {ANSWER}.")
        for row, given_to_row in zip(rows, answers, strict=True):
            given_to_row.add(given.get(_key(row)))
    kept = [row for row, given_to_row in zip(rows, answers, strict=True) if given_to_row == {True}]
    refused = sum(False in given_to_row for given_to_row in answers)
    write_lines(Path(out), [json.dumps(row, ensure_ascii=False) for row in kept])
    return AnnotationReport(len(kept), refused, len(rows) - len(kept) - refused)


def _key(values: Any) -> tuple[str, ...]:
    return tuple(" ".join(str(values.get(name, "")).split()) for name in COLUMNS[:3])
