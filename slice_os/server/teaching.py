"""Teaching over HTTP: all labels come with each request, so that nothing has to be remembered."""

from __future__ import annotations

import msgspec

from slice_os.api import Index
from slice_os.errors import TeachingError
from slice_os.server.bodies import TeachBody, flat
from slice_os.server.workspace import Workspace
from slice_os.teaching.labels import check_consistent
from slice_os.teaching.record import Estimate, TaughtPhrase
from slice_os.teaching.session import Question

PROBABILITIES = [round(0.05 * n, 2) for n in range(1, 20)]
"""Where the estimates are taken: .05 to .95."""


class Threshold(msgspec.Struct, frozen=True):
    """What a phrase is worth if its matches have at least a probability, and of which degree."""

    degree: float
    estimate: Estimate


class Taught(msgspec.Struct, frozen=True):
    """What has been learnt.

    Attributes:
        name: What its matches are called.
        phrases: What it began with.
        labels: How many labels were taken.
        stale: Sentences on labels whose words the index does not have.
        estimate: What it is worth at a probability of ½; None with too few labels.
        curve: The same at other probabilities.
        questions: What to ask next.
        saved: The name under which it is kept, if it is.
    """

    name: str
    phrases: tuple[str, ...]
    labels: int
    stale: list[str]
    estimate: Estimate | None
    curve: list[Threshold]
    questions: list[Question]
    saved: str | None


def teach(index: Index, body: TeachBody, workspace: Workspace) -> Taught:
    """Teach a phrase with the labels of a request, and keep it if that was asked for.

    Raises:
        TeachingError: labels contradict each other, or none fits the index.
        QueryError: there is no phrase, or the encoder knows no word of it.
    """
    phrases = tuple(dict.fromkeys(flat(body.phrases)))
    if not phrases:
        raise TeachingError("There is no phrase to teach: give at least one.")
    file = workspace.check(body.save, phrases) if body.save is not None else None
    check_consistent(body.labels)
    # As a phrase that was taught with them before: the first answers may all say the same.
    before = TaughtPhrase(phrases[0], phrases, (), "", "", body.labels) if body.labels else None
    session = index.teach(
        phrases, name=body.name, taught=before, filters=body.filters, seed=body.seed
    )
    taught = session.taught()
    if file is not None:
        session.save(file)
    curve = []
    for probability in PROBABILITIES:
        estimate = session.estimate(probability)
        if estimate is not None:
            curve.append(Threshold(min(taught.degree(probability), 1.0), estimate))
    return Taught(
        session.name,
        session.phrases,
        len(session.labels),
        session.stale,
        session.estimate(),
        curve,
        session.ask(body.ask) if body.ask else [],
        body.save,
    )
