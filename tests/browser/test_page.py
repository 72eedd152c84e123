"""The page in a real browser: searching, sliding, downloading, by keyboard and at phone width."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from axe_playwright_python.sync_playwright import Axe

import slice_os
from support.serving import serving

HOSTILE = "<img src=x onerror=alert(1)> I want to cancel my order \U0001f600 today."


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    location = tmp_path_factory.mktemp("page") / "calls.slice"
    with slice_os.open(location) as index:
        texts = ["I would like to cancel my order, please.", HOSTILE, "The ship sank at night."]
        texts += [f"{who} asked to {what} the plan." for who in ("She", "Bob", "Nobody")
                  for what in ("cancel", "keep", "read", "end")]  # fmt: skip
        index.add(slice_os.Document(f"calls/{n}", text) for n, text in enumerate(texts))
        workspace = tmp_path_factory.mktemp("workspace")
        with serving({"calls": index}, workspace=str(workspace)) as server:
            yield f"{server.url}/"


def test_a_search_marks_words_and_shows_a_hostile_text_as_text(page):
    page.locator("#query").fill("wants to cancel the order")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.hit")
    assert "<img src=x onerror=alert(1)>" in page.locator(".hits").inner_text()
    assert page.locator(".hits img").count() == 0
    page.locator("mark").first.focus()
    assert page.locator(".why").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


def test_the_threshold_moves_without_asking_and_what_is_left_is_saved(page, asked):
    page.get_by_role("link", name="Mine").click()
    page.locator("#phrases").fill("I want to cancel my order")
    page.get_by_role("button", name="Mine", exact=True).click()
    page.wait_for_selector(".mine[aria-busy=false]")
    found = int(page.locator(".mine .note").inner_text().split()[0])
    page.wait_for_load_state("networkidle")
    before = len(asked)
    page.locator(".slider:not([hidden]) input").focus()
    page.keyboard.press("End")
    left = int(page.locator(".mine .note").inner_text().split()[0])
    assert found > left == 1
    assert [address for address in asked[before:] if "/api/" in address] == []
    with page.expect_download() as download:
        page.get_by_label("Download as csv").click()
    rows = download.value.path().read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + left
    with page.expect_download() as download:
        page.get_by_label("Download as parquet").click()
    (row,) = pyarrow.parquet.read_table(download.value.path()).to_pylist()
    assert row["text"] == "I want to cancel my order"
    assert row["degree"] >= 0.995
    page.locator(".list").focus()
    page.keyboard.press("Enter")
    assert page.wait_for_selector("#reader mark").inner_text() == "I want to cancel my order"


def test_answers_by_key_teach_a_phrase_that_is_saved_and_mined(page):
    page.get_by_role("link", name="Teach").click()
    page.locator("#teach-phrases").fill("wants to cancel")
    page.get_by_role("button", name="Teach", exact=True).click()
    for number in range(1, 9):
        text = page.wait_for_selector(".question:not([aria-busy]) .asked").inner_text()
        page.keyboard.press("y" if "cancel" in text or "end" in text else "n")
        page.get_by_text(f"{number} answer").wait_for()
    page.keyboard.press("b")
    page.get_by_text("7 answers").wait_for()
    page.reload()  # nothing is lost
    page.get_by_text("7 answers").wait_for()
    page.locator("#taught-name").fill("cancel")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Find all of cancel").click()
    page.wait_for_selector(".mine[aria-busy=false]")
    assert page.locator(".list-row").first.is_visible()
    assert page.locator(".names").inner_text().splitlines()[2].startswith("@cancel")


def test_a_document_is_a_state_that_back_and_forward_come_to(page, url):
    page.goto(f"{url}#search?query=cancel+my+order")
    page.locator("article.hit header button").first.click()
    page.wait_for_selector("#reader mark")
    first = page.url
    place = "document=calls/2&at=4&to=8"
    page.evaluate(f"location.hash = '#search?query=cancel+my+order&{place}'")
    page.locator("#reader mark", has_text="ship").wait_for()
    page.go_back()
    page.locator("#reader mark", has_text="cancel my order").wait_for()
    assert page.url == first
    page.go_back()
    page.wait_for_selector("#reader", state="hidden")
    assert page.locator("article.hit").count() > 1
    page.go_forward()
    page.locator("#reader mark", has_text="cancel my order").wait_for()
    page.locator("#query").evaluate("field => { field.value = 'half a que' }")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda address: "document" not in address)
    page.go_forward()
    page.locator("#reader mark", has_text="cancel my order").wait_for()
    page.go_back()
    page.wait_for_selector("#reader", state="hidden")
    assert page.locator("#query").input_value() == "half a que"
    page.goto("about:blank")
    page.goto(f"{url}#mine?{place}")
    page.locator("#reader mark", has_text="ship").wait_for()
    page.get_by_role("button", name="Close").click()
    page.wait_for_url(f"{url}#mine")


def test_the_same_as_a_search_and_a_mining_is_run(page, url, tmp_path):
    page.goto(f"{url}#search?query=it%27s+%22%24HOME%22+to+cancel&literal=true&size=3")
    page.get_by_text("The same as").click()
    command = page.locator("[data-form=curl] pre").inner_text()
    degrees = page.locator("article.hit .degree").all_inner_texts()
    hits = json.loads(subprocess.check_output(["bash", "-c", command]))["hits"]
    assert [f"{math.floor(hit['degree'] * 1000) / 1000:.3f}" for hit in hits] == degrees
    assert "_search" in page.locator("[data-form=Cluster] pre").inner_text()
    page.goto(f"{url}#mine?phrases=it%27s+to+cancel%0Akeep+the+plan&degree=0.8")
    page.wait_for_selector(".mine[aria-busy=false]")
    page.get_by_text("The same as").click()
    command = page.locator("[data-form='Command line'] pre").inner_text()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said = subprocess.check_output(["bash", "-c", command], env={**os.environ, "PATH": path})
    number = int(page.locator(".mine .note").inner_text().split()[0])
    assert len(re.findall(rb"^[01]\.", said, re.MULTILINE)) == number > 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "state",
    [
        "search?query=cancel",
        "mine?phrases=cancel",
        "teach?phrases=cancel",
        "compare?query=cancel&b_mode=lexical",
    ],
)
def test_views_are_for_everybody(page, url, state, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{url}#{state}")
    page.wait_for_selector("mark")
    page.wait_for_load_state("networkidle")
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


def test_selected_words_are_more_like_this_or_not(page, url):
    page.goto(f"{url}#search?query=cancel")
    page.wait_for_selector("article.hit mark")
    page.locator("article.hit .text").first.select_text()
    page.get_by_role("button", name="Not like this").click()
    page.get_by_text("Less like").first.wait_for()
    assert "disliked=" in page.url
    assert "query=cancel" in page.url


def test_two_settings_stand_side_by_side_differences_first(page, url):
    page.goto(f"{url}#compare")
    page.locator("#compare-query").fill("wants to stop")
    page.get_by_text("Setting B").click()
    page.locator('[id="SearchBody-b_mode"]').select_option("lexical")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector(".compare[aria-busy=false]")
    assert "b_mode=lexical" in page.url
    assert "not among the first" in page.locator("article.hit").first.inner_text()
