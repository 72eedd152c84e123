"""A text's sentences, in order."""

from __future__ import annotations

from slice_os.corpus import unwrap
from slice_os.errors import MissingExtraError


def cut_sentences(text: str, language: str = "en") -> list[str]:
    """Return the sentences of `text`, without the space around them.

    The cutting is sentencex's (Wikimedia's, for some 300 languages). Line ends end a sentence too,
    unless they only come from hard wrapping. (The splitter of passages knows
    English alone, and where in doubt lets two passages share words.)

    Raises:
        MissingExtraError: It needs the extra ``ranking``.
    """
    try:
        from sentencex import segment
    except ModuleNotFoundError as exc:
        raise MissingExtraError("Cutting texts into sentences", "ranking") from exc
    found = [
        sentence.strip()
        for line in unwrap(text).splitlines()
        for sentence in segment(language, line)
    ]
    return [sentence for sentence in found if sentence]
