"""A page in Chromium, of the server that a module has at its `url`."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import sync_playwright


@pytest.fixture
def asked():
    """The addresses that the page has asked for."""
    return []


@pytest.fixture
def page(url, asked):
    chromium = shutil.which("chromium")
    assert chromium, "The page is tested in Chromium and there is none: apt-get install chromium."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        wrong = []
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        yield page
        browser.close()
    assert wrong == []
    assert [address for address in asked if not address.startswith((url, "blob:"))] == []
