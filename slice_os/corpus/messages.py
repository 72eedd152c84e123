"""Lists of messages -> text: one turn a line, with the name of who says it before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from slice_os.corpus.markup import without_markup

SAID = ("content", "text", "value", "body", "message", "utterance", "parts", "transcript", "msg")
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
        said = {"speakers": speakers, "start": times[:1], "end": times[-1:]}
        return {
            name: value if name == "speakers" else value[0] for name, value in said.items() if value
        }


def conversation_in(row: Mapping[str, Any]) -> Conversation | None:
    """Return the conversation that a row holds, wherever in it, None if there is none."""
    for value, path in _containers(row, "", 0):
        items = list(value.values()) if isinstance(value, Mapping) else value
        named = path.rpartition(".")[2].lower() in LISTS
        if named and all(isinstance(one, str) for one in items):
            return Conversation([Turn(" ".join(one.split())) for one in items if one.strip()], path)
        if len(items) > 0 and all(isinstance(one, Mapping) for one in items):
            turns = [turn for one in items if (turn := turn_of(one))]
            if turns and any(turn.speaker for turn in turns):
                return Conversation(turns, path)
            if turns and named:
                return Conversation(turns, path)
    return None


def _containers(value: Any, path: str, depth: int) -> Iterator[tuple[Any, str]]:
    """Yield the lists and objects in an object, those of usual names first, and then deeper."""
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return
    held = [(name, one) for name, one in value.items() if isinstance(one, list | Mapping) and one]
    held.sort(key=lambda pair: LISTS.index(pair[0].lower()) if pair[0].lower() in LISTS else 99)
    for name, one in held:
        yield one, f"{path}{name}"
    for name, one in held:
        yield from _containers(one, f"{path}{name}.", depth + 1)


def turn_of(message: Mapping[str, Any], texts: Sequence[str] = SAID) -> Turn | None:
    """Return what a message says, None if it says nothing."""
    inner = message.get("message")
    if isinstance(inner, Mapping):  # as ChatGPT's exports have it
        message = {**message, **inner}
    text = next((said for name in texts if (said := text_of(message.get(name)))), "")
    if not text.strip():
        return None
    speaker = next((said for name in SPEAKERS if (said := _name(message.get(name)))), "")
    time = next((said for name in TIMES if (said := _time(message.get(name)))), "")
    return Turn(" ".join(text.split()), speaker, time)


def text_of(value: Any, depth: int = 0) -> str:
    """Return the text of a message's field, which may be of pieces and nested."""
    if isinstance(value, str):
        return without_markup(value)
    if depth > _DEEPEST:
        return ""
    if isinstance(value, Mapping):
        return next((said for name in SAID if (said := text_of(value.get(name), depth + 1))), "")
    if isinstance(value, list):
        # Texts beside objects are one sentence, of which Telegram marks the links; else parts.
        mixed = any(isinstance(one, str) for one in value)
        return ("" if mixed else "\n").join(
            filter(None, (text_of(one, depth + 1) for one in value))
        )
    return ""


def _name(value: Any) -> str:
    if isinstance(value, Mapping):
        return next((said for name in _NAMES if (said := _name(value.get(name)))), "")
    return " ".join(value.split())[:100] if isinstance(value, str) else ""


def _time(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) and value not in ("", 0) else ""


def pick(row: Mapping[str, Any], path: str) -> Conversation | None:
    """Return what a path such as ``messages[].content`` names; None if there is nothing."""
    before, _, last = path.rpartition("[]")
    found: list[Any] = [row]
    for part in before.split("[]"):
        found = [
            item
            for one in found
            if isinstance(held := _at(one, part.strip(".")), list)
            for item in held
        ]
    name = last.strip(".")
    turns = []
    for one in found:
        value = one if not name else _at(one, name)
        text = " ".join(text_of(value).split())
        if text:
            about = turn_of({**one, SAID[0]: text}) if isinstance(one, Mapping) else None
            turns.append(about._replace(text=text) if about else Turn(text))
    return Conversation(turns, before.split("[]")[0].strip(".")) if turns else None


def _at(value: Any, path: str) -> Any:
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
