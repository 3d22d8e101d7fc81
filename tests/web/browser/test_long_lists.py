"""Twenty thousand photos: few of them are in the page at a time, and any month is one drag away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.live_server import server_here
from tests.support.many_photos import PHOTOS, make_library

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")

MOST_NODES = 2_500
_NODES = "document.querySelectorAll('*').length"


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over very many photos."""
    with server_here(make_library(tmp_path_factory.mktemp("endless"))) as url:
        yield url


def test_twenty_thousand_photos_are_scrolled_with_few_nodes(
    new_page: Callable[..., Page], device: str, endless: str
) -> None:
    surface = new_page(endless, device)
    page = surface.open()
    expect(page.locator(".tile[data-photo]").first).to_be_visible()
    heights = page.evaluate("document.documentElement.scrollHeight / innerHeight")
    assert heights > 200  # the whole list can be scrolled to
    counts = []
    for share in (0, 0.3, 0.7, 1):
        page.evaluate(f"scrollTo(0, {share} * (document.documentElement.scrollHeight - innerHeight))")
        page.wait_for_function(_SETTLED)
        counts.append(page.evaluate(_NODES))
    assert max(counts) < MOST_NODES, counts
    expect(page.locator("[data-photo] img").first).to_be_attached()

    scrubber = page.get_by_role("slider", name="Date")
    expect(scrubber).to_have_attribute("aria-valuetext", "November 2014")
    scrubber.focus()
    page.keyboard.press("Home")
    expect(scrubber).to_have_attribute("aria-valuetext", "December 2023")
    page.keyboard.press("PageDown")
    expect(scrubber).to_have_attribute("aria-valuetext", re.compile("December 2022|January 2023"))
    page.wait_for_function(_SETTLED)
    assert surface.axe_findings() == []
    assert surface.faults == []
    surface.context.close()


def test_a_long_answer_is_scrolled_with_few_nodes(
    new_page: Callable[..., Page], device: str, endless: str
) -> None:
    surface = new_page(endless, device)
    page = surface.open("search?with=f1.0")  # whoever is in the first photo is in all of them
    expect(page.locator(".summary")).to_have_text(f"{PHOTOS:,} photos")
    height, counts = 0, []
    for _ in range(8):  # a page of the answer or more each time
        page.wait_for_function("(height) => document.documentElement.scrollHeight > height", arg=height)
        height = page.evaluate("document.documentElement.scrollHeight")
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        page.wait_for_function(_SETTLED)
        counts.append(page.evaluate(_NODES))
    assert page.evaluate("document.documentElement.scrollHeight / innerHeight") > 15
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_function(_SETTLED)
    counts.append(page.evaluate(_NODES))
    assert max(counts) < MOST_NODES, counts
    assert surface.faults == []
    surface.context.close()


def test_the_large_view_turns_back_beyond_the_photos_that_were_loaded(
    new_page: Callable[..., Page], endless: str
) -> None:
    surface = new_page(endless)
    page = surface.open()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    page.wait_for_function(_SETTLED)
    page.locator("#view-search .tile[data-photo] .open").first.click()
    title = page.locator("#viewer .title span")
    number = int(title.inner_text().removesuffix(".jpg"))
    for _ in range(2):  # together more than a page of the timeline
        page.evaluate(
            """(steps) => {
                const left = () => new KeyboardEvent("keydown", { key: "ArrowLeft" });
                for (; steps; steps -= 1) document.getElementById("viewer").dispatchEvent(left());
            }""",
            55,
        )
        number -= 55
        expect(title).to_have_text(f"{number:05}.jpg")
    expect(page.get_by_role("button", name="Previous photo")).to_be_enabled()
    assert surface.faults == []
    surface.context.close()


# Whether everything on the screen is a photo that was loaded.
_SETTLED = """() => {
    const tiles = [...document.querySelectorAll("#view-search .tile")].filter((tile) => {
        const { top, bottom } = tile.getBoundingClientRect();
        return bottom > 0 && top < innerHeight;
    });
    return tiles.length > 4 && tiles.every((tile) => tile.dataset.photo);
}"""
