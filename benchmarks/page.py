"""The page in a real browser: two hundred thousand matches, and a newcomer's task.

Needs Chromium in the PATH.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import slice_os
from benchmarks.serving import served
from benchmarks.text import EXAMPLES
from tests.support.newcomer import A_KEY, A_STEP, do_task

TITLE = "The page"
MATCHES = 200_000
MOVES = 40
PHRASES = (
    "I want to cancel my order",
    "please cancel the order",
    "cancel my subscription",
    "we want to cancel the contract",
    "I would like to cancel",
)
WHO = ("I", "We", "She", "He", "They", "Somebody", "The customer", "My neighbour")
WHAT = ("order", "subscription", "contract", "delivery", "membership")
MOVE = """async (value) => {
  const input = document.querySelector(".slider:not([hidden]) input");
  const began = performance.now();
  input.value = value;
  input.dispatchEvent(new Event("input"));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
}"""


def run(data: Path | None) -> list[str]:
    """Measure both, each in a fresh browser."""
    figures: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary, browser() as chromium:
        location = str(Path(temporary) / "calls.slice")
        repeated(location, MATCHES)
        with served(location) as (port, _):
            figures |= many(chromium, f"http://127.0.0.1:{port}/")
        examples = str(Path(temporary) / "examples.slice")
        with slice_os.open(examples) as index:
            index.add(slice_os.read(EXAMPLES / "conversations"))
        with served(examples, "--workspace", str(Path(temporary) / "taught")) as (port, _):
            figures |= newcomer(chromium, f"http://127.0.0.1:{port}/")
    return [
        "| what | |",
        "|---|---:|",
        *(f"| {name} | {value} |" for name, value in figures.items()),
    ]


def repeated(location: str, matches: int) -> None:
    """Make an index of calls in which the same is said again and again, for so many matches."""
    lines = [f"{who} wanted to cancel the {what}, please." for who in WHO for what in WHAT]
    calls = matches // (len(lines) * len(PHRASES)) + 1
    with slice_os.open(location) as index:
        index.add(slice_os.Document(f"calls/{n}", "\n\n".join(lines)) for n in range(calls))


@contextmanager
def browser() -> Iterator[Browser]:
    """Give a Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("There is no Chromium in the PATH: apt-get install chromium.")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
        )
        yield started
        started.close()


def moves(page: Page, count: int = MOVES) -> list[float]:
    """Return how long each of some moves of the slider takes, till it is drawn, in milliseconds."""
    return [float(page.evaluate(MOVE, str(155 + n % 40))) for n in range(count)]


def heap(page: Page) -> float:
    """Return the megabytes that the page's objects have."""
    page.evaluate("gc()")
    return float(page.evaluate("performance.memory.usedJSHeapSize")) / 1e6


def many(chromium: Browser, url: str) -> dict[str, str]:
    """Return what two hundred thousand matches take."""
    page = chromium.new_page()
    page.goto(f"{url}#mine")
    page.locator("#phrases").fill("\n".join(PHRASES))
    empty, began = heap(page), time.perf_counter()
    page.get_by_role("button", name="Mine", exact=True).click()
    page.wait_for_selector(".list-row")
    first, during = time.perf_counter() - began, []
    while page.locator(".mine").get_attribute("aria-busy") == "true":
        during += moves(page, 5)
        time.sleep(0.5)
    whole = time.perf_counter() - began
    after = moves(page)
    page.evaluate(MOVE, "150")
    counted = page.locator(".mine .note").inner_text()
    saved = {}
    for kind in ("csv", "jsonl", "parquet"):
        since = time.perf_counter()
        with page.expect_download(timeout=120_000) as download:
            page.get_by_label(f"Download as {kind}").click()
        size = download.value.path().stat().st_size
        saved[f"saved as {kind}"] = f"{time.perf_counter() - since:.1f} s, {size / 1e6:.1f} MB"
    used = heap(page)
    page.close()
    return {
        f"{counted}: the first, all of them": f"{first:.1f} s, {whole:.1f} s",
        "a move of the slider while they come: median, longest": spread(during),
        "a move of the slider over all of them: median, longest": spread(after),
        "memory of the page's objects: before, with all": f"{empty:.0f} MB, {used:.0f} MB",
        **saved,
    }


def newcomer(chromium: Browser, url: str) -> dict[str, str]:
    """Return what a newcomer's task takes."""
    page = chromium.new_page()
    done = do_task(page, url, lambda text: "cancel" in text.lower())
    page.close()
    return {
        f"a newcomer's task, {done.steps} steps, {done.typed} characters typed: the page's part, "
        f"with {A_STEP:.0f} s a step and {A_KEY} s a character": (
            f"{done.waited:.0f} s, {done.seconds:.0f} s"
        ),
        "reloads of the page": str(int(done.reloaded)),
        "what it says in the end": done.told,
    }


def spread(times: list[float]) -> str:
    """Return the median and the largest of some milliseconds."""
    return f"{statistics.median(times):.0f} ms, {max(times):.0f} ms"
