"""One line asks for people, without others, in a year; two clicks take the photos along."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from setnet.library import Library
from tests.support.live_server import server_here

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")


@pytest.fixture
def named(
    made: Any, portraits: dict[str, Path], new_page: Callable[..., Page], tmp_path: Path
) -> Iterator[Page]:
    """A window on a library in which Anna, Ben and Cleo are saved by their portraits."""
    shutil.copytree(made.library, tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        for name, file in zip(("Anna", "Ben", "Cleo"), portraits.values(), strict=True):
            library.people.add_photos(name, [str(file)])
    with server_here(tmp_path / "library") as url:
        page = new_page(url)
        yield page
        page.context.close()
        assert page.faults == []


def test_one_line_is_a_search_and_its_photos_are_taken_in_two_clicks(named: Page) -> None:
    page = named.open()
    page.keyboard.press("/")
    page.keyboard.type("be")
    option = page.get_by_role("option", name="Ben")
    expect(option).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".person .called")).to_have_text("Ben")

    named.look_for("anna -cleo")
    expect(page.locator(".person")).to_have_count(3)
    expect(page.locator(".group h2").first).to_contain_text("with Ben and Anna")
    expect(page.locator('[aria-label^="Open three.jpg"]')).to_have_count(0)

    page.get_by_role("button", name="Remove Cleo from the query").click()
    expect(page.locator(".group h2").first).to_have_text("2 photos with Ben and Anna")
    page.click("#order")
    expect(page.locator(".month").first).to_be_visible()

    # A search is kept under a name, and brings people and filters back.
    page.click("#save-search")
    page.get_by_role("dialog", name="Save this search").get_by_label("Name").fill("Both of them")
    page.keyboard.press("Enter")
    expect(page.locator(".toast", has_text="Both of them is saved")).to_be_visible()
    address = page.url
    for name in ("Ben", "Anna"):
        page.get_by_role("button", name=f"Remove {name} from the query").click()
    kept = page.get_by_role("group", name="Both of them")
    expect(kept.locator("small")).to_have_text("3")
    page.evaluate("localStorage.setItem('setnet-searches', JSON.stringify({ 'Both of them': 1 }))")
    page.reload()
    expect(kept.locator("small")).to_have_text("3, 2 new")
    assert named.axe_findings() == []
    kept.get_by_role("button", name="Both of them").first.click()
    expect(page.locator(".group h2").first).to_have_text("2 photos with Ben and Anna")
    assert page.url == address
    page.get_by_role("button", name="Select all 2 photos with Ben and Anna").click()
    bar = page.get_by_role("toolbar", name="Selected photos")
    expect(bar).to_contain_text("2 selected")
    href = bar.get_by_role("link", name="Download").get_attribute("href")
    assert href.count(",") == 1
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()

    # What is wrong in several photos is said once.
    page.get_by_role("button", name="Select all 2 photos with Ben and Anna").click()
    bar.get_by_role("button", name="Who?").click()
    page.get_by_role("dialog", name="Who is in them").get_by_role("button", name="Not Ben").click()
    expect(page.locator(".toast", has_text="Ben removed from 2 photos.")).to_be_visible()
    expect(page.locator("#view-search .absent")).to_have_text("No photo has both Ben and Anna.")
    named.undo()
    expect(page.locator(".group h2").first).to_have_text("2 photos with Ben and Anna")

    page.locator(".tile .open").first.focus()
    first = page.evaluate("document.activeElement.ariaLabel")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.ariaLabel") != first
    page.keyboard.press("x")
    expect(bar).to_contain_text("1 selected")
    page.keyboard.press("Escape")


def test_filters_stay_while_browsing_and_one_that_leaves_nothing_is_named(named: Page) -> None:
    page = named.open()
    expect(page.locator(".summary")).to_have_text("5 photos")
    page.get_by_role("group", name="Years").get_by_role("button", name="2016").click()
    expect(page.locator(".summary")).not_to_have_text("5 photos")
    expect(page.locator("#filter-date")).to_have_text("2016")
    named.look_for("2001 -cleo")
    expect(page.locator("#view-search .empty h2")).to_have_text("No photo without them")
    assert named.axe_findings() == []
    page.get_by_role("button", name="Drop the filter 2001").click()  # without Cleo alone is a search
    expect(page.locator("#view-search .tile[data-photo]").first).to_be_visible()
    expect(page.locator('[aria-label^="Open three.jpg"]')).to_have_count(0)
    page.reload()
    expect(page.locator(".person.is-without .called")).to_have_text("Cleo")
    expect(page.locator("#view-search .tile[data-photo]").first).to_be_visible()
    named.open("people")
    page.locator(".named-person", has_text="Ben").click()
    page.locator(".together").get_by_role("button", name="Anna (2)").click()
    expect(page.locator(".group h2").first).to_have_text("2 photos with Anna and Ben")
    page.locator(".tile .open").first.focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert named.axe_findings() == []
