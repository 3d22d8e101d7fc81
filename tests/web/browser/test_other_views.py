"""The index view, the keyboard, the token, and forgetting everything."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from setnet.library import Library, SavedSearch
from setnet.web import WebSettings
from tests.support.live_server import server_here

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")


@pytest.mark.parametrize("device", ["phone"], indirect=True)
def test_index_view_tells_folders_failures_and_a_run(surface: Page, made: Any) -> None:
    page = surface.open("index")
    expect(page.locator(".folders")).to_contain_text(str(made.photos))
    expect(page.locator(".failures")).to_contain_text("broken.jpg")
    assert surface.axe_findings() == []
    page.get_by_role("button", name="Look for new photos").click()
    expect(page.locator("#run-title")).to_have_text("Up to date")
    expect(page.get_by_role("link", name="See who is in your photos")).to_be_visible()
    expect(page.locator("#failures-title")).to_have_text("1 file could not be read")
    expect(page.locator(".facts")).not_to_contain_text("failed")  # a second count, of this run alone
    page.fill("#new-folder", "/nowhere/at/all")
    page.get_by_role("button", name="Add it").click()
    expect(page.locator(".toast.error")).to_contain_text("no folder")
    surface.faults = [f for f in surface.faults if "422" not in f]  # the browser notes the refused request


def test_many_photos_that_are_gone_are_removed_only_after_a_question(
    new_page: Callable[..., Page], device: str, made: Any, tmp_path: Path
) -> None:
    shutil.copytree(made.photos, tmp_path / "photos")
    with Library.create(tmp_path / "library") as library:
        library.index([tmp_path / "photos"], workers=0)
    for photo in (tmp_path / "photos").rglob("t*.jpg"):
        photo.unlink()
    with server_here(tmp_path / "library") as url:
        surface = new_page(url, device)
        page = surface.open("index")
        page.get_by_label("Remove photos whose files are gone").check()
        page.get_by_role("button", name="Look for new photos").click()
        notice = page.locator("#prune-refused")
        expect(notice).to_contain_text("more than a tenth of all, so none was removed")
        assert surface.axe_findings() == []
        page.get_by_label("Remove photos whose files are gone").uncheck()
        notice.get_by_role("button", name="Remove them all the same").click()
        page.get_by_role("button", name="Remove", exact=True).click()
        expect(notice).to_have_count(0)
        expect(page.locator("#library-size")).to_have_text("4 photos")
        surface.context.close()
        assert surface.faults == []


def test_everything_is_reached_by_keyboard(new_page: Callable[..., Page], served: str) -> None:
    surface = new_page(served)
    page = surface.open()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"brand", "search-field", "add-photos", "open"} <= reached
    page.locator(".tile .open").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#viewer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".tile .open").first).to_be_focused()
    surface.context.close()


# What only somebody may be offered who may change the library.
_CHANGES = re.compile(
    r"(Not |Yes|Who|Save|Edit|Merge|Remove$|Remove the|Name |Nobody I know|Forget|Add it|Browse"
    r"|$|Skip|Non$|See all faces|Look for new|Draw a box|Somebody else|Move to|Make a new|Use as cover"
    r"|/home/me)"
)
_OFFERED = """() => [...document.querySelectorAll("main :is(a, button, input), dialog :is(a, button, input)")]
    .filter((one) => one.checkVisibility())
    .map((one) => one.ariaLabel || one.placeholder || one.textContent.trim())"""


def test_a_token_that_only_reads_is_offered_nothing_that_changes(
    new_page: Callable[..., Page], made: Any, portraits: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        library.people.add_photos("Anna", [str(portraits["P001"])])
        library.searches.save(SavedSearch("Us", ("Anna",)))
    settings = WebSettings(token="a-token-for-everything", read_token="a-token-that-only-reads")
    with server_here(tmp_path / "library", settings) as url:
        everything, reading = (
            _offered_to(new_page(url), token) for token in (settings.token, settings.read_token)
        )
    changing = {name for name in everything if _CHANGES.match(name)}
    assert len(changing) > 15, everything
    assert reading == everything - changing


def _offered_to(surface: Page, token: str | None) -> set[str]:
    """Return what can be pressed and filled in on all views, by name."""
    page, found = surface.page, set[str]()

    def look() -> None:
        names = page.evaluate(_OFFERED)
        found.update(re.sub(r"(?<=\D)\d+$", "", name) for name in names)  # counts come a moment later

    page.goto(f"{surface.url}/#token={token}")
    searches = page.get_by_role("group", name="Us")
    searches.wait_for()
    look()
    searches.get_by_role("button", name="Us").first.click()
    page.get_by_role("button", name="Select all").first.click()
    look()
    page.keyboard.press("Escape")
    page.locator(".tile .open").first.click()
    expect(page.locator("#viewer .side")).to_contain_text("Find this person")
    look()
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "photo=" not in url)  # the browser has gone back
    page.goto(f"{surface.url}/#people")
    page.locator(".group-tile:visible").first.wait_for()
    look()
    page.locator(".named-person").click()
    page.get_by_role("tab", name="Example faces").click()
    expect(page.locator(".examples .member")).to_have_count(1)
    look()
    page.goto(f"{surface.url}/#index")
    expect(page.locator(".folders .path")).to_have_count(1)
    look()
    surface.context.close()
    assert surface.faults == []
    return found


def test_empty_library_token_forgetting_and_signing_out(
    new_page: Callable[..., Page], made: Any, tmp_path: Path, start_server: Callable[..., Any]
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    token = "a-token-for-the-browser"
    with start_server(tmp_path / "library", SETNET_TOKEN=token) as server:
        surface = new_page(server.url)
        page = surface.page
        page.goto(server.url)
        page.fill("#dialog-input", "not the right one")
        page.keyboard.press("Enter")
        alert = page.locator("dialog[open]").get_by_role("alert")
        expect(alert).to_have_text("This is not the token that 'setnet serve' printed.")
        page.fill("#dialog-input", token)
        page.keyboard.press("Enter")
        expect(page.locator(".tile").first).to_be_visible()
        assert page.evaluate("document.cookie") == ""  # scripts cannot read it

        page.goto(f"{server.url}/#index")
        page.click("#forget-everything")
        page.get_by_role("button", name="Forget everything", exact=True).click()
        expect(page.locator("#library-size")).to_have_text("0 photos")
        expect(page.locator("#forget-everything")).to_be_hidden()  # nothing is left to forget
        page.goto(f"{server.url}/#people")
        expect(page.locator("#view-people .empty h2")).to_have_text("Nobody here yet")
        page.goto(f"{server.url}/#search")
        expect(page.locator("#view-search .welcome h2")).to_have_text("No photos yet")
        other = new_page(server.url, "phone")
        other.page.goto(f"{server.url}/#token={token}")  # the address that was printed
        expect(other.page.locator("#view-search .welcome h2")).to_have_text("No photos yet")
        assert "token" not in other.page.url
        assert other.faults == []
        other.page.get_by_role("button", name="Sign out").click()
        expect(other.page.get_by_role("dialog", name="This library needs a token")).to_be_visible()
        other.context.close()
        surface.context.close()
