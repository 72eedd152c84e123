"""The page in a real browser: searching, sliding, downloading, by keyboard and at phone width."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import sync_playwright

import slice_os
from support.serving import serving

HOSTILE = "<img src=x onerror=alert(1)> I want to cancel my order \U0001f600 today."


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    location = tmp_path_factory.mktemp("page") / "calls.slice"
    with slice_os.open(location) as index:
        texts = ["I would like to cancel my order, please.", HOSTILE, "The ship sank at night."]
        index.add(slice_os.Document(f"calls/{n}", text) for n, text in enumerate(texts))
        with serving({"calls": index}) as server:
            yield f"{server.url}/"


@pytest.fixture
def page(url):
    chromium = shutil.which("chromium")
    assert chromium, "The page is tested in Chromium and there is none: apt-get install chromium."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        wrong, asked = [], []
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.asked = asked
        page.goto(url)
        yield page
        browser.close()
    assert wrong == []
    assert [one for one in asked if not one.startswith((url, "blob:"))] == []


def test_a_search_marks_words_and_shows_a_hostile_text_as_text(page):
    page.locator("#query").fill("wants to cancel the order")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.hit")
    assert "<img src=x onerror=alert(1)>" in page.locator(".hits").inner_text()
    assert page.locator(".hits img").count() == 0
    page.locator("mark").first.focus()
    assert page.locator(".why").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


def test_the_threshold_moves_without_asking_and_what_is_left_is_saved(page):
    page.get_by_role("link", name="Mine").click()
    page.locator("#phrases").fill("I want to cancel my order")
    page.get_by_role("button", name="Mine", exact=True).click()
    page.wait_for_selector(".mine[aria-busy=false]")
    found = int(page.locator(".mine .note").inner_text().split()[0])
    page.wait_for_load_state("networkidle")
    before = len(page.asked)
    page.locator(".slider:not([hidden]) input").focus()
    page.keyboard.press("End")
    left = int(page.locator(".mine .note").inner_text().split()[0])
    assert found > left == 1
    assert len(page.asked) == before
    with page.expect_download() as download:
        page.get_by_label("Download as csv").click()
    rows = download.value.path().read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + left
    page.locator(".list").focus()
    page.keyboard.press("Enter")
    assert page.wait_for_selector("#reader mark").inner_text() == "I want to cancel my order"
