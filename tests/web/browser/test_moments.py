"""Copies and bursts are one photo of the answer, to be looked at one by one; dates tell their source."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from setnet.library import Library
from tests.support.live_server import server_here

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")
_MODEL = 0x0110


@pytest.fixture
def album(
    device: str, compose: Callable[..., None], new_page: Callable[..., Page], tmp_path: Path
) -> Iterator[Page]:
    """A window on a burst of two photos with a copy of the first, and on a photo that only its name dates."""
    photos = tmp_path / "photos"
    for number in range(2):
        compose(photos / f"burst-{number}.jpg", ("P003", "P001"), 3 + number, f"2023:08:02 12:00:0{number}")
    (photos / "saved").mkdir()
    shutil.copy(photos / "burst-0.jpg", photos / "saved" / "burst-0 (1).jpg")
    compose(photos / "IMG-20210704-WA0003.jpg", ("P003", "P005"), 5)
    for file in photos.rglob("burst*.jpg"):
        with Image.open(file) as image:
            exif = image.getexif()
            exif[_MODEL] = "Pinhole 3"
            image.save(file, exif=exif, quality="keep")
    with Library.create(tmp_path / "library") as library:
        library.index([photos], workers=0)
    with server_here(tmp_path / "library") as url:
        page = new_page(url, device)
        yield page
        page.context.close()
        assert page.faults == []


@pytest.mark.parametrize("device", ["phone"], indirect=True)
def test_a_burst_with_its_copies_is_one_photo_that_can_be_opened(
    album: Page, portraits: dict[str, Path]
) -> None:
    page = album.open()
    tiles = page.locator("#view-search .tile .open")
    moment = page.locator('[aria-label*=", 3 alike"]')
    by_date = page.locator("#view-search .month")
    expect(by_date).to_have_text(["Aug 2023", "Jul 2021"])
    expect(tiles).to_have_count(2)
    expect(moment).to_have_count(1)
    expect(page.locator(".summary")).to_have_text("4 photos")

    album.add(portraits["P003"])
    expect(by_date).to_have_count(0)
    expect(tiles).to_have_count(2)
    expect(page.locator(".summary")).to_have_text("4 photos")
    expect(moment).to_have_count(1)
    tick = page.get_by_role("button", name="Select all")
    tick.click()
    expect(page.get_by_role("toolbar", name="Selected photos")).to_contain_text("4 selected")
    tick.click()

    moment.click()
    viewer = page.locator("#viewer")
    album.show_faces()
    several = viewer.get_by_label("Photos of this moment").get_by_role("button")
    expect(several).to_have_count(3)
    seen = {viewer.locator(".title span").inner_text()}
    for number in (1, 2):
        several.nth(number).click()
        expect(several.nth(number)).to_have_attribute("aria-pressed", "true")
        seen.add(viewer.locator(".title span").inner_text())
    assert seen == {"burst-0.jpg", "burst-1.jpg", "burst-0 (1).jpg"}
    expect(viewer.locator(".target")).to_have_count(2)
    expect(viewer.get_by_label("Camera")).to_have_text("Pinhole 3")
    assert album.axe_findings() == []
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)

    page.click("#filter-mode")
    page.get_by_label("Show copies and bursts one by one").check()
    expect(tiles).to_have_count(4)
    assert album.axe_findings() == []
    page.reload()
    expect(tiles).to_have_count(4)
    expect(page.locator("#filter-mode")).to_have_text("Advanced: one by one")

    lone = page.locator('.tile:has([aria-label^="Open IMG-20210704"])')
    face = {"photo": lone.get_attribute("data-photo"), "face": 0}
    saved = page.request.post(f"{album.url}/api/v1/people", data={"name": "Ida", "photo_faces": [face]})
    album.open(f"people/{saved.json()['id']}")
    expect(page.locator("#view-person .tile .open")).to_have_count(2)
    expect(page.locator("#view-person").locator('[aria-label*=", 3 alike"]')).to_have_count(1)
    expect(page.get_by_role("tab", name="Photos")).to_have_text("Photos4")

    # What is said of a stack is said of all its photos.
    page.locator("#view-person").locator('[aria-label*=", 3 alike"]').click()
    album.show_faces()
    viewer.get_by_role("button", name="Not Ida").click()
    expect(page.locator(".toast", has_text="Ida removed from 3 photos.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("tab", name="Photos")).to_have_text("Photos1")
    album.undo()
    expect(page.get_by_role("tab", name="Photos")).to_have_text("Photos4")

    album.open("search")
    album.look_for("Ida")
    expect(page.locator(".group h2").first).to_have_text("4 photos with Ida")
    page.click("#choose-photos")
    page.locator("#view-search").locator('[aria-label*=", 3 alike"]').click()
    page.get_by_role("toolbar", name="Selected photos").get_by_role("button", name="Who?").click()
    page.get_by_role("dialog", name="Who is in them").get_by_role("button", name="Not Ida").click()
    expect(page.locator(".toast", has_text="Ida removed from 3 photos.")).to_be_visible()
    expect(page.locator(".summary")).to_have_text("1 photo")


def test_a_date_that_no_camera_wrote_is_marked(album: Page) -> None:
    page = album.open()
    page.locator('[aria-label^="Open IMG-20210704-WA0003.jpg"]').click()
    title = page.locator("#viewer .title")
    expect(title).to_contain_text("July 4, 2021")
    expect(title).to_contain_text("date from the file\u2019s name")
    page.keyboard.press("ArrowLeft")
    expect(title).to_contain_text("August 2, 2023")
    expect(title).not_to_contain_text("from the file")
