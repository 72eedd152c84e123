"""Take the screenshots of the page that README and docs/server.md show: `make screenshots`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import slice_os

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from support.serving import serving  # noqa: E402

IMAGES = ROOT / "docs" / "images"
PHRASES = ("the customer wants to cancel", "change of address", "the bill is too high")


def search(page: Page) -> None:
    """Show a search, and why its first hit is one."""
    page.locator("#query").fill("the customer wants to cancel")
    page.keyboard.press("Enter")
    page.locator("article.hit mark").first.hover()
    page.locator(".why").first.wait_for()


def mine(page: Page) -> None:
    """Show what is mined, and the threshold."""
    page.locator("#phrases").fill("\n".join(PHRASES))
    page.get_by_role("button", name="Mine", exact=True).click()
    page.locator(".mine[aria-busy=false]").wait_for()


def take() -> None:
    """Index the examples, and take each view."""
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        slice_os.open(f"{folder}/demo.slice") as index,
        sync_playwright() as playwright,
    ):
        index.add(slice_os.read(ROOT / "examples" / "conversations"))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with serving({"demo": index}) as server:
            for view in (search, mine):
                page = browser.new_page(viewport={"width": 1100, "height": 720})
                page.goto(f"{server.url}/#{view.__name__}")
                page.wait_for_load_state("networkidle")
                view(page)
                page.screenshot(path=str(IMAGES / f"{view.__name__}.png"))
        browser.close()


if __name__ == "__main__":
    take()
