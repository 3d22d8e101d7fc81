"""What a person does with the groups of unknown faces: name them, hide them, answer suggestions."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.live_server import server_here

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")

# Names for the people of the album, each with a photo and the number of their face in it.
ANNA, BEN, CLEO = ("pair.jpg", 0, "Anna"), ("alone.jpg", 0, "Ben"), ("others.jpg", 0, "Cleo")


def test_photos_of_two_people_without_a_third_and_no_portrait(
    new_page: Callable[..., Page], made: Any, tmp_path: Path
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    with server_here(tmp_path / "library") as url:
        surface = new_page(url)
        page = surface.open("people")
        expect(page.locator("#who-title")).to_be_visible()
        assert surface.axe_findings() == []
        for photo, face, name in (ANNA, BEN, CLEO):
            surface.name_group(photo, face, name)
        expect(page.locator(".named-person")).to_have_count(3)
        expect(page.locator(".named-person", has_text="Ben")).to_contain_text("3 photos")

        for name in ("Anna", "Cleo"):
            page.get_by_role("button", name=f"Select {name}").click()
        assert surface.axe_findings() == []
        page.get_by_role("button", name="Photos with these two").click()
        expect(page.locator(".group h2").first).to_contain_text("with Anna and Cleo")
        for name in ("Anna", "Cleo"):
            page.get_by_role("button", name=f"Remove {name} from the query").click()

        # Two people without a third in a year: four clicks.
        page.get_by_role("button", name="Look for Anna").click()
        page.get_by_role("button", name="Look for Ben").click()
        page.locator(".face-choice", has_text="Cleo").hover()
        page.get_by_role("button", name="Without Cleo").click()
        page.get_by_role("group", name="Years").get_by_role("button", name="2016").click()
        expect(page.locator(".person .called")).to_have_text(["Anna", "Ben", "Cleo"])
        expect(page.locator("#filter-date")).to_have_text("2016")
        expect(page.locator(".summary")).to_have_text("2 photos")
        assert surface.axe_findings() == []
        page.click("#reset-filters")
        expect(page.locator(".group h2").first).to_contain_text(" and ")
        expect(page.locator('[aria-label^="Open three.jpg"]')).to_have_count(0)
        surface.unfold()
        expect(page.locator(".tile")).to_have_count(2)
        assert surface.names() == ["pair.jpg", "alone.jpg"]
        assert surface.faults == []
        surface.context.close()


def test_suggestions_are_confirmed_refused_and_skipped_by_one_key(people: Page) -> None:
    page = people.open("people")
    for photo, face, name in (ANNA, BEN):
        people.name_group(photo, face, name)
    panel, once = page.locator("#view-people .suggestion"), page.locator("summary", has_text="seen once")
    first = panel.locator("h2")
    expect(panel).to_contain_text("1 more to ask")
    skipped = first.inner_text()
    other = "Is this Ben too?" if "Anna" in skipped else "Is this Anna too?"
    expect(once).to_contain_text("3")
    assert people.axe_findings() == []
    page.locator("h1:visible").click()  # takes the focus out of the field of the next group
    page.keyboard.press("s")
    expect(first).to_have_text(other)
    page.keyboard.press("n")
    expect(page.locator(".toast", has_text="That is not")).to_be_visible()
    expect(panel).to_be_hidden()
    people.undo()
    expect(first).to_have_text(other)
    page.keyboard.press("y")
    expect(panel).to_be_hidden()
    expect(once).to_contain_text("2")
    people.undo()
    expect(once).to_contain_text("3")
    panel.get_by_role("button", name="Yes").click()
    expect(once).to_contain_text("2")
    page.reload()  # what was skipped is asked again another time
    expect(first).to_have_text(skipped)


@pytest.mark.parametrize("device", ["phone"], indirect=True)
def test_a_group_is_hidden_and_shown_again(people: Page) -> None:
    page = people.open("people")
    group = people.group_of(*CLEO[:2])
    tile = page.locator(f'#view-people .group-tile[data-group="{group}"]')
    tile.get_by_role("button", name="Nobody I know").click()
    expect(tile).to_have_count(0)
    people.undo()
    expect(tile).to_be_visible()
    tile.get_by_role("button", name="Nobody I know").click()
    page.locator("summary", has_text="Hidden").click()
    tile.get_by_role("button", name="Show again").click()
    expect(tile.get_by_role("combobox")).to_be_visible()
    expect(page.locator("summary", has_text="Hidden")).to_be_hidden()


@pytest.mark.parametrize("device", ["phone"], indirect=True)
def test_wrong_faces_are_left_out_when_a_group_is_named(people: Page) -> None:
    page = people.open("people")
    group = people.group_of(*BEN[:2])
    page.locator(f'[data-group="{group}"] .picture').click()
    sheet = page.locator("#group-sheet")
    expect(sheet.locator(".member")).to_have_count(2)
    assert people.axe_findings() == []
    sheet.locator(".see").first.click()
    expect(page.locator("#viewer .target").first).to_be_visible()
    page.keyboard.press("Escape")
    sheet.locator(".member").first.click()
    expect(sheet.locator("footer > p")).to_have_text("1 face left out")
    sheet.get_by_role("combobox").fill("Ben")
    sheet.get_by_role("button", name="Save").click()
    expect(sheet).to_have_count(0)
    expect(page.locator("summary", has_text="seen once")).to_contain_text("4")
    people.undo()
    expect(page.locator(".named-person")).to_have_count(0)
    expect(page.locator(f'[data-group="{group}"] .picture')).to_be_visible()


def test_names_are_offered_and_a_taken_one_asks(people: Page) -> None:
    page = people.open("people")
    people.name_group(*ANNA)
    field = page.locator(f'[data-group="{people.group_of(*CLEO[:2])}"]').get_by_role("combobox")
    field.press_sequentially("an")
    expect(page.get_by_role("option", name="Anna")).to_be_visible()
    field.press("ArrowDown")
    assert people.axe_findings() == []
    field.press("Enter")  # takes the saved Anna, who does not look like this
    question = page.get_by_role("dialog", name="Is this the same Anna?")
    expect(question).to_contain_text("looks different")
    assert people.axe_findings() == []
    expect(question.get_by_role("button", name="No, another name")).to_be_focused()
    page.keyboard.press("Enter")  # once too often: it must not mix two people
    expect(question).to_have_count(0)
    expect(field).to_have_value("Anna")
    expect(page.locator(".named-person")).to_have_count(1)
    field.press("Enter")
    question.get_by_role("button", name="A different Anna").click()
    expect(page.locator(".named-person b")).to_have_text(["Anna", "Anna 2"])
    people.faults = [fault for fault in people.faults if "409" not in fault]  # the browser notes the question


def test_a_face_named_in_the_large_view_names_its_group(
    new_page: Callable[..., Page], made: Any, tmp_path: Path
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    with server_here(tmp_path / "library") as url:
        surface = new_page(url)
        page = surface.open("search")
        group = surface.group_of("alone.jpg", 0)
        page.locator('[aria-label^="Open alone.jpg"]').click()
        page.locator("#viewer").get_by_role("button", name="Who is this?").click()
        question = page.get_by_role("dialog", name="Who is this?")
        question.get_by_role("combobox").fill("Alejandro")
        page.keyboard.press("Enter")
        toast = page.locator(".toast", has_text="Alejandro")
        expect(toast).to_contain_text("Alejandro, in 3 photos.")
        expect(page.locator("#viewer").get_by_role("button", name="Not Alejandro")).to_be_visible()
        expect(page.locator("#viewer").get_by_role("button", name="Yes, this is")).to_have_count(0)
        page.keyboard.press("Escape")
        page.wait_for_url(re.compile("^[^?]*$"))  # one step back: the address has no photo any more
        surface.open("people")
        expect(page.locator(".named-person")).to_contain_text("3 photos")
        expect(page.locator(f'[data-group="{group}"]')).to_have_count(0)
        expect(page.locator("#view-people .suggestion")).to_be_hidden()
        surface.undo()
        expect(page.locator(f'[data-group="{group}"]')).to_be_visible()

        # Where no face was found, a box drawn by hand says who it is.
        surface.name_group("alone.jpg", 0, "Alejandro")
        surface.open("search")
        page.locator('[aria-label^="Open nobody.jpg"]').click()
        page.get_by_role("button", name="Draw a box around somebody").click()
        frame = page.locator("#viewer .frame").bounding_box()
        page.mouse.move(frame["x"] + 40, frame["y"] + 40)
        page.mouse.down()
        page.mouse.move(frame["x"] + 120, frame["y"] + 140)
        page.mouse.up()
        question.get_by_role("combobox").fill("Alejandro")
        page.keyboard.press("Enter")
        expect(page.locator("#viewer .tagged")).to_contain_text("Alejandro")
        expect(page.locator("#viewer .side").get_by_role("button", name="Not Alejandro")).to_be_visible()
        assert surface.axe_findings() == []
        page.keyboard.press("Escape")
        page.locator(".face-tile", has_text="Alejandro").click()
        expect(page.locator(".group h2").first).to_have_text("4 photos with Alejandro")
        page.get_by_label("Remove Alejandro from the query").click()
        page.locator('[aria-label^="Open nobody.jpg"]').click()
        page.get_by_role("button", name="Not Alejandro").click()
        expect(page.locator("#viewer .tagged")).to_have_count(0)
        page.keyboard.press("Escape")
        assert surface.faults == []
        surface.context.close()


def test_grouping_waits_for_an_index_run_and_says_so(
    new_page: Callable[..., Page], made: Any, tmp_path: Path
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    with server_here(tmp_path / "library") as url:
        surface = new_page(url)
        page, run = surface.page, {"state": "running"}

        def with_new_faces(route: Any) -> None:
            answer = route.fetch()
            route.fulfill(response=answer, json=answer.json() | {"ungrouped_faces": 37})

        def with_run(route: Any) -> None:
            answer = route.fetch()
            route.fulfill(response=answer, json=answer.json() | {"index": run})

        page.route("**/api/v1/groups?*", with_new_faces)
        page.route("**/api/v1/status", with_run)
        page.route(
            "**/api/v1/groups/discover", lambda route: route.fulfill(status=409, json={"detail": "raw"})
        )
        surface.open("people")
        notice = page.locator(".ungrouped")
        expect(notice).to_contain_text("37 faces are not grouped yet.")
        notice.get_by_role("button", name="Group them now").click()
        expect(notice).to_contain_text("again and again while the index run goes on")
        expect(notice.get_by_role("button")).to_be_hidden()
        expect(page.locator(".toast")).to_have_count(0)
        surface.context.close()
