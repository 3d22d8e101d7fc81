"""The query lives in the address: reload and Back, the large view, and faces that the server forgot."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")


@pytest.mark.parametrize("device", ["phone"], indirect=True)
def test_a_query_survives_reload_and_back(surface: Page, portraits: dict[str, Path]) -> None:
    page = surface.open()
    surface.add(portraits["P003"])
    surface.add(portraits["P005"])
    surface.rename("Person 1", "Anna & co ~ 1")
    page.click("#filter-need")
    page.get_by_label("All of them", exact=True).check()
    page.keyboard.press("Escape")
    heading = page.locator(".group h2").first
    expect(heading).to_contain_text(" and ")
    expect(page.locator(".group")).to_have_count(1)
    names = surface.names()

    page.reload()
    expect(page.locator(".person .called")).to_have_text(["Anna & co ~ 1", "Person 2"])
    expect(page.locator("#filter-need")).to_have_text("All of them")
    expect(heading).to_contain_text(" and ")
    assert surface.names() == names

    # The large view is a step of its own, and Back closes it; turning to the next photo is none.
    page.click("#reset-filters")
    expect(page.locator(".group")).to_have_count(2)
    page.locator(".tile .open").first.click()
    viewer = page.locator("#viewer")
    page.keyboard.press("ArrowRight")
    looked_at = viewer.locator(".title span").inner_text()
    assert "photo=" in page.url
    page.reload()
    expect(viewer.locator(".title span")).to_have_text(looked_at)
    _zoom(viewer)
    page.go_back()
    expect(viewer).to_have_count(0)
    expect(page.locator(".group")).to_have_count(2)
    page.go_back()  # the filter that was reset
    expect(page.locator(".group")).to_have_count(1)
    assert "photo=" not in page.url


def test_typing_a_number_is_one_step_for_back(surface: Page, portraits: dict[str, Path]) -> None:
    page = surface.open()
    surface.add(portraits["P003"])
    expect(page.locator(".group h2").first).to_be_visible()
    steps = page.evaluate("history.length")
    page.click("#filter-faces")
    page.get_by_label("At least this many faces").press_sequentially("100")
    expect(page.locator("#filter-faces")).to_have_text("100 or more faces")
    assert page.evaluate("history.length") == steps + 1
    page.get_by_label("At most this many faces").press_sequentially("200")  # another field, another step
    assert page.evaluate("history.length") == steps + 2
    page.go_back()
    expect(page.locator("#filter-faces")).to_have_text("100 or more faces")
    page.go_back()
    expect(page.locator("#filter-faces")).to_have_text("Faces")
    expect(page.locator(".group h2").first).to_be_visible()


def _zoom(viewer: Any) -> None:
    frame = viewer.locator(".frame")
    before = frame.bounding_box()["width"]
    viewer.page.keyboard.press("+")
    once = frame.bounding_box()["width"]
    assert once > before * 1.5
    frame.hover(force=True)
    viewer.page.mouse.wheel(0, -300)
    sync_api.expect(viewer.locator(".stage")).to_have_class(re.compile("is-zoomed"))
    assert frame.bounding_box()["width"] > once
    viewer.page.keyboard.press("0")
    assert abs(frame.bounding_box()["width"] - before) < 2
    if viewer.page.evaluate("matchMedia('(hover: none)').matches"):
        _pinch(viewer)
        assert frame.bounding_box()["width"] > before * 1.5


def _pinch(viewer: Any) -> None:
    """Put two fingers on the photo and spread them."""
    stage = viewer.locator(".stage").bounding_box()
    x, y = stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2
    fingers = viewer.page.context.new_cdp_session(viewer.page)

    def touch(kind: str, *apart: int) -> None:
        points = [{"x": x + side * each, "y": y, "id": side} for each in apart for side in (-1, 1)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 20)
    for apart in (40, 80, 120):
        touch("touchMove", apart)
    touch("touchEnd")


def test_a_server_that_was_away_is_reached_again_and_gets_the_faces_again(
    new_page: Callable[..., Page],
    made: Any,
    tmp_path: Path,
    start_server: Callable[..., Any],
    portraits: dict[str, Path],
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    with start_server(tmp_path / "library") as server:
        port = server.url.rpartition(":")[2]
        surface = new_page(server.url)
        page = surface.open()
        surface.add(portraits["P003"])
        expect(page.locator(".group h2").first).to_contain_text("with Person 1")
        names = surface.names()
    page.get_by_role("link", name="People").click()
    trouble = page.get_by_role("alert")
    expect(trouble).to_contain_text("No connection to setnet")
    expect(page.locator("#view-people")).to_be_hidden()
    assert surface.axe_findings() == []
    trouble.get_by_role("button", name="Retry").click()  # still away
    expect(trouble.get_by_role("button", name="Retry")).to_be_focused()
    with start_server(tmp_path / "library", "--port", port):
        # unless the page noticed by itself that the server is back
        page.evaluate("document.querySelector('.trouble button')?.click()")
        expect(page.locator("#people-title")).to_be_visible()
        expect(trouble).to_have_count(0)
        page.get_by_role("link", name="Search", exact=True).click()
        page.reload()
        expect(page.locator(".group h2").first).to_contain_text("with Person 1")
        assert surface.names() == names
        expect(page.locator(".person .face img")).to_have_attribute("src", re.compile("/faces/f-"))
        surface.context.close()
