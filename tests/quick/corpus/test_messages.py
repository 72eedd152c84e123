"""Conversations: a list of messages is a text of a turn a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.corpus import read_sound

TALK = [
    {"role": "user", "content": "I want\nto cancel.", "ts": "10:00"},
    {"role": "assistant", "content": [{"type": "text", "text": "Why?"}], "ts": "10:01"},
    {"role": "tool", "content": None},
]
SAID = "user: I want to cancel.\nassistant: Why?"


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "messages": TALK},
        {"id": 1, "data": {"conversation": {"turns": TALK}}},
        {
            "id": 1,
            "mapping": {
                "x": {"message": None},
                "a": {
                    "message": {
                        "author": {"role": "user"},
                        "content": {"parts": ["I want to cancel."]},
                    }
                },
                "b": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["Why?"]}}},
            },
        },
        {
            "id": 1,
            "utterances": [
                {"speaker": "user", "text": "I want to cancel."},
                {"speaker": "assistant", "text": "Why?"},
            ],
        },
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_list_of_messages_is_a_text_of_a_turn_a_line(
    tmp_path: Path, name: str, row: dict[str, Any]
) -> None:
    (found,) = read_sound(tmp_path, name, json.dumps(row))
    assert (found.id, found.text) == (f"{name}#1", SAID)
    assert found.metadata["speakers"] == ["user", "assistant"]
    assert not any(
        key.startswith(("messages", "mapping", "data", "utter")) for key in found.metadata
    )


def test_named_lists_of_messages(tmp_path: Path) -> None:
    row = {"text": "a summary", "log": {"items": TALK}, "n": 1}
    (found,) = read_sound(tmp_path, "a.jsonl", json.dumps(row), text_fields=["log.items[].content"])
    assert found.text == SAID
    assert found.metadata["start"] == "10:00"
    assert (found.metadata["end"], found.metadata["n"]) == ("10:01", 1)
    (found,) = read_sound(tmp_path, "a.jsonl", json.dumps({"t": ["a", "b"]}), text_fields="t[]")
    assert found.text == "a\nb"


def test_conversations_without_names_and_of_plain_texts(tmp_path: Path) -> None:
    (found,) = read_sound(tmp_path, "a.json", json.dumps([TALK]))
    assert found.text == SAID
    (found,) = read_sound(tmp_path, "a.jsonl", json.dumps({"id": 1, "dialog": ["Hi.", "Bye."]}))
    assert found.text == "Hi.\nBye."


def test_the_chats_of_telegram(tmp_path: Path) -> None:
    mixed = ["see ", {"type": "link", "text": "x.org"}, " now"]
    chat = {
        "name": "Ann",
        "id": 5,
        "messages": [
            {"id": 1, "type": "service", "actor": "Ann", "text": ""},
            {"id": 2, "date": "2024-05-01T10:00:00", "from": "Ann", "text": mixed},
        ],
    }
    (one,) = read_sound(tmp_path, "a.json", json.dumps(chat))
    (two,) = read_sound(
        tmp_path, "b.json", json.dumps({"about": "x", "chats": {"about": "y", "list": [chat]}})
    )
    assert one.text == two.text == "Ann: see x.org now"
    assert one.metadata["start"] == "2024-05-01T10:00:00"
