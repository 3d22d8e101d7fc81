"""The first run: a folder is chosen, photos appear while they are scanned; five clicks to two people."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")


@pytest.mark.parametrize("device", [pytest.param("desktop", marks=pytest.mark.soak), "phone"], indirect=True)
def test_from_an_empty_library_to_chosen_photos_in_a_zip_file(
    new_page: Callable[..., Page], device: str, made: Any, tmp_path: Path, start_server: Callable[..., Any]
) -> None:
    shutil.copytree(made.photos, tmp_path / "home" / "Pictures" / "Album")
    (tmp_path / "home" / "Music").mkdir()
    with start_server(tmp_path / "library", HOME=str(tmp_path / "home")) as server:
        surface = new_page(server.url, device)
        page = surface.open()
        expect(page.locator(".welcome h2")).to_have_text("No photos yet")
        assert surface.axe_findings() == []

        page.evaluate(_COUNT_CLICKS)
        page.click("#choose-folder")
        browser = page.locator("#folder-browser")
        expect(browser.locator(".way")).to_have_text(str(tmp_path / "home" / "Pictures"))
        if device == "phone":
            browser.get_by_role("button", name="Up").click()
            expect(browser.get_by_role("button", name="Music")).to_be_visible()
            assert surface.axe_findings() == []
            browser.get_by_role("button", name="Pictures").click()
            browser.get_by_role("button", name="Album").click()
            expect(browser.get_by_role("status")).to_contain_text(
                "1 photo here, folders in it are scanned too"
            )
        browser.get_by_role("button", name="Use this folder").click()

        # Nothing is reloaded by hand: photos come as they are stored.
        expect(page.locator("#view-search .tile[data-photo]")).to_have_count(5)
        expect(page.get_by_role("link", name="See who is in them")).to_be_visible()
        expect(page.locator("#library-size")).to_have_text("5 photos")

        bar = page.get_by_role("toolbar", name="Selected photos")
        if device == "phone":
            page.get_by_role("button", name="Select", exact=True).click()
            for name in ("pair.jpg", "three.jpg"):
                page.get_by_role("button", name=f"Select {name}").click()
        else:
            faces = page.get_by_role("group", name="People to look for").locator(".face-tile")
            faces.first.click()
            page.get_by_role("button", name="Person", exact=True).click()
            page.get_by_role("dialog", name="People").locator(".face-tile").nth(1).click()
            tick = page.get_by_role("button", name="Select all 2 photos with")
            expect(tick).to_be_visible()
            assert page.evaluate("clicks.splice(0).length") == 5
            page.keyboard.press("Escape")
            tick.click()
        expect(bar).to_contain_text("2 selected")
        assert surface.axe_findings() == []
        with page.expect_download() as download:
            bar.get_by_role("link", name="Download").click()
            assert device == "phone" or page.evaluate("clicks.splice(0).length") == 2
        data = Path(download.value.path()).read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert sorted(archive.namelist()) == ["pair.jpg", "three.jpg"]
        surface.context.grant_permissions(["clipboard-read", "clipboard-write"])
        if device == "desktop":
            bar.get_by_role("button", name="Copy paths").click()
            expect(page.locator(".toast", has_text="2 paths copied.")).to_be_visible()
            names = [Path(line).name for line in _clipboard(page).splitlines()]
            assert sorted(names) == ["pair.jpg", "three.jpg"]
        page.keyboard.press("Escape")
        expect(bar).to_be_hidden()
        # To share is as far away; here the browser has no share sheet.
        page.evaluate("clicks.splice(0)")
        (tick if device == "desktop" else page.get_by_role("button", name="Select", exact=True)).click()
        bar.get_by_role("button", name="Copy link").click()
        expect(page.locator(".toast", has_text="Link copied.")).to_be_visible()
        assert _clipboard(page) == page.url
        assert page.evaluate("clicks.splice(0).length") == 2
        assert surface.faults == []
        surface.context.close()


def _clipboard(page: Any) -> str:
    copied: str = page.evaluate("navigator.clipboard.readText()")
    return copied


_COUNT_CLICKS = """() => {
    window.clicks = [];
    addEventListener("click", (event) => event.isTrusted && event.detail && clicks.push(event.target), true);
}"""
