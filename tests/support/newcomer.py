"""A newcomer's task on the page: phrases, answers, what is right in nine of ten, saved."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

PHRASES = (
    "I want to cancel my service",
    "please cancel my subscription",
    "I would like to cancel",
)
ANSWERS = 20
A_STEP, A_KEY = 4.0, 0.28
"""Seconds that a person is given for a step, to read, to decide and to press or click, and for each
character that is typed (Card, Moran and Newell's average typist)."""


class Done(NamedTuple):
    """What it took, and what came of it."""

    steps: int
    typed: int
    waited: float
    told: str
    saved: bytes
    reloaded: bool

    @property
    def seconds(self) -> float:
        """Seconds of a person: the steps, what is typed, and what the page makes them wait."""
        return A_STEP * self.steps + A_KEY * self.typed + self.waited


def do_task(page: Any, url: str, is_right: Callable[[str], bool]) -> Done:
    """Do it in a fresh page; `is_right` tells of a text in question whether to answer yes."""
    page.goto(url)
    page.evaluate("window.isTheSame = true")
    began, steps, typed = time.perf_counter(), 0, 0

    def step(act: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        nonlocal steps, typed
        steps += 1
        typed += len(arguments[0]) if act.__name__ in ("fill", "press_sequentially") else 0
        return act(*arguments, **options)

    step(page.get_by_role("link", name="Teach").click)
    for number, phrase in enumerate(PHRASES):
        step(page.locator("#teach-phrases").press_sequentially, "\n" * bool(number) + phrase)
    step(page.get_by_role("button", name="Teach", exact=True).click)
    for number in range(1, ANSWERS + 1):
        text = page.wait_for_selector(".question:not([aria-busy]) .asked mark").inner_text()
        step(page.keyboard.press, "y" if is_right(text) else "n")
        page.get_by_text(f"{number} answer").wait_for()
    page.wait_for_selector(".question:not([aria-busy])")
    slider = page.locator("#wanted")
    step(slider.focus)
    while float(slider.input_value()) > 0.9:
        step(page.keyboard.press, "ArrowLeft")
    while float(slider.input_value()) < 0.9:
        step(page.keyboard.press, "ArrowRight")
    told = page.locator(".learnt p").first.inner_text()
    step(page.locator("#taught-name").fill, "cancel")
    step(page.get_by_role("button", name="Save").click)
    step(page.get_by_role("link", name="Find all of cancel").click)
    page.wait_for_selector(".mine[aria-busy=false] .list-row")
    with page.expect_download() as download:
        step(page.get_by_label("Download as csv").click)
    saved = download.value.path().read_bytes()
    waited = time.perf_counter() - began
    return Done(steps, typed, waited, told, saved, not page.evaluate("window.isTheSame === true"))
