"""Twenty thousand photos: few of them are in the page at a time, and any month is one drag away."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from setnet.library import Library
from setnet.library.maintenance.creation import remember

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")

PHOTOS = 20_000
MOST_NODES = 2_500
SHAPES = ((400, 300), (300, 400), (480, 270))
_NODES = "document.querySelectorAll('*').length"


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., Any]) -> Iterator[str]:
    """A server over many photos of some years, which are links to three pictures."""
    place = tmp_path_factory.mktemp("endless")
    photos = place / "photos"
    photos.mkdir()
    for number, size in enumerate(SHAPES):
        Image.new("RGB", size, (90 + 40 * number, 120, 150)).save(photos / f"shape-{number}.jpg")
    rows = []
    for number in range(PHOTOS):
        shape = number % len(SHAPES)
        path = photos / f"{number:05}.jpg"
        os.link(photos / f"shape-{shape}.jpg", path)
        taken = datetime(2023, 12, 31, 12, tzinfo=UTC) - timedelta(hours=4 * number)
        rows.append((bytes(path), number.to_bytes(16, "big"), taken.timestamp(), *SHAPES[shape]))
    with Library.create(place / "library") as library:
        remember(library._database, [bytes(photos)])
        with library._database.writing() as db:  # rows are enough: nobody is searched for
            db.executemany(
                "INSERT INTO photos (path, size, mtime_ns, hash, taken, width, height, state, stored) "
                "VALUES (?, 1, 1, ?, ?, ?, ?, 'ready', 0)",
                rows,
            )
    with start_server(place / "library", place / "sets") as server:
        yield server.url


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
    assert surface.serious_findings() == []
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
