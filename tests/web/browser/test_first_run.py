"""The first run: a folder is chosen by walking to it, and photos appear while they are looked at."""

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

        page.click("#choose-folder")
        browser = page.locator("#folder-browser")
        _enter(browser, "home", str(tmp_path / "home"))
        expect(browser.get_by_role("button", name="Music")).to_be_visible()
        assert surface.axe_findings() == []
        _enter(browser, "Pictures", "Pictures")
        _enter(browser, "Album", "Album")
        expect(browser.get_by_role("status")).to_contain_text("1 photo here, folders in it are scanned too")
        browser.get_by_role("button", name="Use this folder").click()

        # Nothing is reloaded by hand: photos come as they are stored.
        expect(page.locator("#view-search .tile[data-photo]")).to_have_count(5)
        expect(page.get_by_role("link", name="See who is in them")).to_be_visible()
        expect(page.locator("#library-size")).to_have_text("5 photos")

        if device == "phone":
            page.get_by_role("button", name="Select", exact=True).click()
        else:
            page.locator(".tile").first.hover()
        for name in ("pair.jpg", "three.jpg"):
            page.get_by_role("button", name=f"Select {name}").click()
        bar = page.get_by_role("toolbar", name="Selected photos")
        expect(bar).to_contain_text("2 selected")
        assert surface.axe_findings() == []
        with page.expect_download() as download:
            bar.get_by_role("link", name="Download").click()
        data = Path(download.value.path()).read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert sorted(archive.namelist()) == ["pair.jpg", "three.jpg"]
        surface.context.grant_permissions(["clipboard-read", "clipboard-write"])
        what = "link" if device == "phone" else "paths"  # here the browser has no share sheet
        bar.get_by_role("button", name=f"Copy {what}").click()
        expect(page.locator(".toast", has_text="copied.")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        names = [Path(line).name for line in copied.splitlines()]
        assert copied == page.url if device == "phone" else sorted(names) == ["pair.jpg", "three.jpg"]
        page.keyboard.press("Escape")
        expect(bar).to_be_hidden()
        assert surface.faults == []
        surface.context.close()


def _enter(browser: Any, name: str, end: str) -> None:
    """Go into a folder, unless the list begins in it."""
    way = browser.locator(".way")
    if not way.inner_text().endswith(end):
        browser.get_by_role("button", name=name).last.click()
    expect(way).to_contain_text(end)
