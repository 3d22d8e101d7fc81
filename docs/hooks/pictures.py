"""Take the pictures of the page in docs/images, of the demo's album, whose people are synthetic.

    make pictures                                 # needs a browser, as the tests of the page do

Makes the album, saves six of its people by their portraits, names the groups of three of them, and takes each
picture in a real browser.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))

from setnet.cli.demo import copy_portraits
from setnet.cli.demo_album import make_album
from setnet.library import Library
from tests.support.live_server import server_on

IMAGES = Path(__file__).parents[1] / "images"
SAVED, GROUPED = ("Ada", "Cleo", "Emil", "Gus", "Hugo", "Iris"), ("Ada", "Cleo", "Emil")
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}
DARK = DESKTOP | {"color_scheme": "dark"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}


def make_library(place: Path) -> dict[str, Path]:
    """Make the album and a library of it with saved people; return their portraits."""
    make_album(place / "album")
    portraits = {file.stem: file for file in copy_portraits(place / "portraits").values()}
    with Library.create(place / "library") as library:
        library.index([place / "album"])
        for name in SAVED:
            library.people.add_photos(name, [str(portraits[name])])
        for name in GROUPED:
            for suggestion in library.groups.suggestions(name, 1):
                library.groups.name(suggestion.group.id, name, if_exists="add")
    return portraits


def take(page: Any, name: str) -> None:
    """Keep what the page shows."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1500)  # what fades in
    page.screenshot(path=IMAGES / f"{name}.jpg", quality=88)


def main() -> None:
    """Take all pictures."""
    program = os.environ.get("SETNET_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        portraits = make_library(Path(folder))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with server_on(Path(folder) / "library") as server:

            def opened(view: str, device: dict[str, Any]) -> Any:
                page = browser.new_context(**device).new_page()
                page.set_default_timeout(120_000)
                page.goto(f"{server.url}/#{view}")
                page.wait_for_selector("html[data-ready]")
                return page

            def search(page: Any, line: str) -> None:
                page.fill("#search-field", line)
                page.keyboard.press("Enter")
                page.wait_for_selector("#view-search[aria-busy=false] .tile")

            page = opened("search", DESKTOP)
            search(page, "Cleo Gus")
            page.locator(".tile").first.hover()
            take(page, "search")

            page = opened("search", DARK)
            search(page, "Cleo Gus Ada")
            page.locator(".tile .open").first.click()
            take(page, "large")

            page = opened("people", DESKTOP)
            page.locator("[data-group]").first.wait_for()
            take(page, "people")

            page = opened("search", DESKTOP)
            with page.expect_file_chooser() as chooser:
                page.click("#add-photos")
            chooser.value.set_files([portraits["Dina"], portraits["Hugo"]])
            page.locator("#picker .pick").nth(1).wait_for()
            take(page, "pick")

            page = opened("search", PHONE)
            page.locator(".tile").first.wait_for()
            take(page, "phone")
        browser.close()


if __name__ == "__main__":
    main()
