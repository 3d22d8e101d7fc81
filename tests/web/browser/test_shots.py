"""Shots on the page: two people are found in one, and it plays from the right second."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.live_server import server_here

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

# The second of a video, once it is between two others.
WHEN = """(video, [low, high]) => new Promise((done) => {
    const look = () => {
        const now = video.currentTime;
        if (low <= now && now < high) done(now); else setTimeout(look, 20);
    };
    look();
})"""

pytestmark = pytest.mark.xdist_group("web-browser")


def test_two_people_are_found_in_a_shot_that_plays_from_its_second(
    filmed: Path, new_page: Callable[..., Page], portraits: dict[str, Path]
) -> None:
    with server_here(filmed) as url:
        surface = new_page(url)
        page = surface.open()
        surface.add(portraits["P001"], portraits["P003"])
        best = page.locator(".group .tile").first
        expect(best.locator(".film")).to_have_text("00:03")
        best.hover()
        expect(best.locator(".sprite")).to_have_attribute("style", re.compile("sprite"))

        best.locator(".open").click()
        video = page.locator("#viewer video")
        assert 2.9 <= video.evaluate(WHEN, [2.9, 9]) < 6.5
        expect(page.locator("#viewer .target:visible")).to_have_count(2)
        expect(page.locator("#viewer .strip button")).to_have_count(2)

        page.locator("#viewer .strip button").first.click()  # the shot before
        assert video.evaluate(WHEN, [0, 2.5]) < 2.5
        expect(page.locator("#viewer .target:visible")).to_have_count(0)
        assert surface.axe_findings() == []
        assert surface.faults == []
