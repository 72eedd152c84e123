"""Lists of messages -> text: one turn a line, with the name of who says it before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from slice_os.corpus.markup import without_markup

TEXTS = ("content", "text", "value", "body", "message", "utterance", "parts", "transcript", "msg")
"""What the text of a message is called, the most usual first;"""
SPEAKERS = (
    "role", "speaker", "from", "author", "sender", "user", "username", "user_name", "sender_name",
    "participant", "actor", "name",
)  # fmt: skip
"""who says it,"""
TIMES = (
    "date", "time", "timestamp", "ts", "created_at", "createdAt", "create_time", "sent_at",
    "datetime", "timestamp_ms", "start", "start_time",
)  # fmt: skip
"""and when;"""
LISTS = (
    "messages", "turns", "utterances", "conversation", "conversations", "dialogue", "dialog",
    "dialogs", "entities", "chat", "chat_messages", "log", "mapping", "segments",
)  # fmt: skip
"""and what lists of messages are called."""
_DEEPEST = 8
_NAMES = ("role", "name", "real_name", "display_name", "username", "id")


class Turn(NamedTuple):
    """What somebody says, and when, if that is known."""

    text: str
    speaker: str = ""
    time: str = ""


class Conversation(NamedTuple):
    """The turns that a row holds, and the field that they stand in."""

    turns: list[Turn]
    field: str

    @property
    def text(self) -> str:
        """One turn a line."""
        return "\n".join(
            f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text for turn in self.turns
        )

    @property
    def metadata(self) -> dict[str, Any]:
        """Who speaks, and when the conversation begins and ends."""
        speakers = [*dict.fromkeys(turn.speaker for turn in self.turns if turn.speaker)]
        times = [turn.time for turn in self.turns if turn.time]
        about: dict[str, Any] = {"speakers": speakers} if speakers else {}
        return {**about, "start": times[0], "end": times[-1]} if times else about


def conversation_in(row: Mapping[str, Any]) -> Conversation | None:
    """Return the conversation that a row holds, wherever in it, None if there is none."""
    for path, value in _containers(row):
        items = list(value.values()) if isinstance(value, Mapping) else value
        is_named = path.rpartition(".")[2].lower() in LISTS
        turns: list[Turn] = []
        if is_named and all(isinstance(item, str) for item in items):
            turns = [Turn(" ".join(item.split())) for item in items if item.strip()]
        elif all(isinstance(item, Mapping) for item in items):
            turns = [turn for item in items if (turn := turn_of(item))]
        if turns and (is_named or any(turn.speaker for turn in turns)):
            return Conversation(turns, path)
    return None


def _containers(
    row: Mapping[str, Any], path: str = "", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Yield the lists and objects in an object, those of usual names first, and then deeper."""
    if depth > _DEEPEST:
        return
    held = [(name, value) for name, value in row.items() if isinstance(value, list | Mapping)]
    held = [(name, value) for name, value in held if value]
    held.sort(key=lambda pair: LISTS.index(pair[0].lower()) if pair[0].lower() in LISTS else 99)
    for name, value in held:
        yield f"{path}{name}", value
    for name, value in held:
        if isinstance(value, Mapping):
            yield from _containers(value, f"{path}{name}.", depth + 1)


def turn_of(message: Mapping[str, Any]) -> Turn | None:
    """Return what a message says, None if it says nothing."""
    inner = message.get("message")
    if isinstance(inner, Mapping):  # as ChatGPT's exports have it
        message = {**message, **inner}
    text = _first_text(message, TEXTS)
    if not text.strip():
        return None
    times = (message.get(name) for name in TIMES)
    time = next((value for value in times if value and isinstance(value, str | int | float)), "")
    return Turn(" ".join(text.split()), _name_in(message, SPEAKERS), str(time))


def text_of(value: Any, depth: int = 0) -> str:
    """Return the text of a field, which may be of pieces and nested."""
    if isinstance(value, str):
        return without_markup(value)
    if depth > _DEEPEST:
        return ""
    if isinstance(value, Mapping):
        return _first_text(value, TEXTS, depth + 1)
    if isinstance(value, list):
        # Texts beside objects are one sentence, of which Telegram marks the links; else parts.
        is_sentence = {str, dict} == {type(item) for item in value}
        pieces = (text_of(item, depth + 1) for item in value)
        return ("" if is_sentence else "\n").join(filter(None, pieces))
    return ""


def _first_text(message: Mapping[str, Any], names: Sequence[str], depth: int = 0) -> str:
    return next((text for name in names if (text := text_of(message.get(name), depth))), "")


def _name_in(message: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return the first name among some fields, which may be objects."""
    for value in map(message.get, fields):
        if isinstance(value, Mapping):
            value = _name_in(value, _NAMES)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:100]
    return ""


def pick(row: Mapping[str, Any], path: str) -> Conversation | None:
    """Return what a path such as ``messages[].content`` names; None if there is nothing."""
    before, _, last = path.rpartition("[]")
    items: list[Any] = [row]
    for part in before.split("[]"):
        lists = [_at(item, part) for item in items]
        items = [item for held in lists if isinstance(held, list) for item in held]
    turns = []
    for item in items:
        if text := " ".join(text_of(_at(item, last)).split()):
            turn = turn_of({**item, TEXTS[0]: text}) if isinstance(item, Mapping) else None
            turns.append((turn or Turn(text))._replace(text=text))
    return Conversation(turns, before.split("[]")[0].strip(".")) if turns else None


def _at(value: Any, path: str) -> Any:
    """Return what a path of names and points leads to, None if that is nothing."""
    for name in filter(None, path.split(".")):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
