"""Files of phrases in which some are taught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from slice_os.engine.phrases import Named, Sought, Texts
from slice_os.errors import TeachingError
from slice_os.teaching.record import SUFFIX, TaughtPhrase, read_taught
from slice_os.types import Match

MARK = "@"
"""What a phrase begins with that is the file of a taught one, beside the file that names it."""


def read_mixed(
    file: Path, read: Callable[[Path], dict[str, Sought]]
) -> tuple[dict[str, Sought], dict[str, TaughtPhrase]]:
    """Return the phrases of a file by name, and the taught ones: of a .json that one.

    Raises:
        TeachingError: A taught phrase cannot be read, or has other phrases beside it.
        CorpusError: The file cannot be read, as `read` says.
    """
    if file.suffix.lower() == SUFFIX:
        taught = read_taught(file)
        return {}, {taught.name: taught}
    plain: dict[str, Sought] = {}
    found: dict[str, TaughtPhrase] = {}
    for name, sought in read(file).items():
        marked = [one for one in sought.phrases if one.startswith(MARK)]
        if not marked:
            plain[name] = sought
            continue
        if len(sought.phrases) > 1 or sought.counter_examples:
            raise TeachingError(
                f"{name!r} in {file} has a taught phrase and others: give them names of their own."
            )
        one = read_taught(file.parent / marked[0][len(MARK) :])
        found[one.name if name == marked[0] else name] = one
    return plain, found


def without_taught(
    phrases: str | Named | TaughtPhrase | Mapping[str, Texts | Sought | TaughtPhrase],
) -> tuple[str | Named, dict[str, TaughtPhrase]]:
    """Return phrases without those that were taught, and these by name."""
    if isinstance(phrases, TaughtPhrase):
        return {}, {phrases.name: phrases}
    if not isinstance(phrases, Mapping):
        return phrases, {}
    taught = {name: phrase for name, phrase in phrases.items() if isinstance(phrase, TaughtPhrase)}
    rest = {name: text for name, text in phrases.items() if not isinstance(text, TaughtPhrase)}
    return rest, taught


def one_after_the_other(first: Iterator[Match], second: Iterator[Match]) -> Iterator[Match]:
    """Yield the matches of two; closing it closes the one that is under way."""
    yield from first
    yield from second
