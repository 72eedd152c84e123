"""Turns of customers: some want to leave, some say what is near to it, most something else."""

from __future__ import annotations

import pytest

import slice_os

LEAVE = [
    "I would like to end my subscription today.",
    "Please close my account for good.",
    "We have decided to stop using your service.",
    "Can you take me off the plan, I do not need it any more?",
    "I am going to switch to another provider next week.",
    "It is time for us to part ways, please terminate the contract.",
    "How do I get out of this membership?",
    "I no longer wish to be a customer of yours.",
    "Stop charging me, I am done with this.",
    "My husband died and we have to shut down his line.",
    "We are not going to renew when the year is over.",
    "Kindly discontinue my monthly delivery.",
]
NEAR = [
    "I would like to extend my subscription by a year.",
    "Please open a second account for my son.",
    "The customer service was very friendly.",
    "I want to cancel the appointment with the technician on Monday.",
    "Can you put me on the larger plan?",
    "The provider next door is cheaper, but I am staying.",
    "Please cancel that order of shoes, I chose the wrong size.",
    "How do I get into the members' area?",
    "I am a new customer of yours.",
    "My delivery did not come this month.",
    "We are glad to renew for another year.",
    "Why was my card charged twice?",
]
ELSE = [
    "The ship sank in the night.",
    "Could you move me to a seat by the window?",
    "This month's bill is far too high.",
    "Where can I park near the station?",
    "My password does not work any longer.",
    "The rain has not stopped since Tuesday.",
    "Is there a vegetarian menu on the flight?",
    "I have lost my luggage in Rome.",
    "What is the exchange rate of the pound?",
    "Your app crashes when I take a picture.",
    "She plays the violin in the evening.",
    "The meeting was moved to the afternoon.",
] * 2
PHRASE = "the customer wants to cancel"


def turns():
    """Return documents whose ids tell whether their second turn says it."""
    documents = []
    for kind, texts in (("leave", LEAVE), ("near", NEAR), ("else", ELSE)):
        for n, text in enumerate(texts):
            other = ELSE[(5 * n + len(kind)) % len(ELSE)]
            documents.append(slice_os.Document(f"{kind}-{n:02}", f"{other}\n{text}"))
    return documents


def says(asked):
    """What a person would answer."""
    return asked.document.startswith("leave")


@pytest.fixture(scope="session")
def encoder():
    with slice_os.load_encoder() as loaded:
        yield loaded


@pytest.fixture(scope="session")
def location(tmp_path_factory, encoder):
    place = tmp_path_factory.mktemp("teaching") / "turns.slice"
    with slice_os.open(place, encoder=encoder) as index:
        index.add(turns())
    return place


@pytest.fixture
def index(location, encoder):
    with slice_os.open(location, encoder=encoder) as opened:
        yield opened


def teach(session, rounds=4, count=5):
    """Answer some rounds; return what was asked."""
    said = []
    for _ in range(rounds):
        for one in session.ask(count):
            session.answer(one, says(one))
            said.append(one)
        session.learn()
    return said
