"""What a person does on the page of somebody they named, and with guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")


def _named(people: Page, *names: str) -> Any:
    page = people.open("people")
    faces = {"Anna": ("pair.jpg", 0), "Ben": ("alone.jpg", 0)}
    for name in names:
        people.name_group(*faces[name], name)
    return page


@pytest.mark.parametrize("device", ["phone"], indirect=True)
def test_a_page_shows_a_person_and_their_photos_by_month(people: Page) -> None:
    page = _named(people, "Ben")
    page.locator(".named-person").click()
    expect(page.locator("#person-title")).to_have_text("Ben")
    months = page.locator("#panel-photos .month")
    expect(months.first).to_have_attribute("aria-label", "January 2019")
    expect(months.nth(1)).to_have_attribute("aria-label", "July 2016")
    assert people.axe_findings() == []

    page.get_by_role("button", name="Edit").click()
    page.fill("#edit-name", "Benjamin")
    page.fill("#edit-aliases", "Ben\nBenni")
    page.fill("#edit-note", "floor 4")
    assert people.axe_findings() == []
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#person-title")).to_have_text("Benjamin")
    expect(page.locator(".aliases")).to_have_text("also Ben, Benni")
    expect(page.locator(".note")).to_have_text("floor 4")
    people.undo()
    expect(page.locator("#person-title")).to_have_text("Ben")

    page.get_by_role("button", name="Remove").first.click()
    expect(page.locator("#people-title")).to_be_visible()
    expect(page.locator(".named-person")).to_have_count(0)


@pytest.mark.parametrize("device", ["phone"], indirect=True)
def test_examples_become_the_cover_leave_and_split_off(people: Page) -> None:
    page = _named(people, "Ben")
    page.locator(".named-person").click()
    page.get_by_role("tab", name="Example faces").click()
    faces = page.locator(".examples .member")
    expect(faces).to_have_count(2)
    expect(page.locator(".examples li").first).to_contain_text("From a group")
    assert people.axe_findings() == []
    faces.nth(1).click()
    page.get_by_role("button", name="Use as cover").click()
    expect(faces.nth(1)).to_contain_text("Cover")

    for face in (0, 1):
        faces.nth(face).click()
    page.locator(".example-bar").get_by_role("button", name="Remove").click()
    expect(faces).to_have_count(0)
    people.undo()  # both come back
    expect(faces).to_have_count(2)

    faces.nth(1).click()
    page.get_by_role("button", name="Make a new person…").click()
    page.get_by_role("dialog").get_by_role("combobox").fill("Dora")
    page.keyboard.press("Enter")
    expect(faces).to_have_count(1)
    people.open("people")
    expect(page.locator(".named-person", has_text="Dora")).to_be_visible()


def test_two_people_become_one_and_two_again(people: Page) -> None:
    page = _named(people, "Anna", "Ben")
    page.locator(".named-person", has_text="Anna").click()
    page.get_by_role("button", name="Merge").click()
    page.get_by_role("dialog").get_by_role("combobox").fill("Ben")
    page.keyboard.press("Enter")
    unlike = page.get_by_role("dialog", name="Anna and Ben look different")
    expect(unlike.get_by_role("button", name="Cancel")).to_be_focused()
    unlike.get_by_role("button", name="Merge all the same").click()
    expect(page.locator("#person-title")).to_have_text("Ben")
    expect(page.locator("#tab-examples")).to_contain_text("4")
    people.undo()
    expect(page.locator("#person-title")).to_have_text("Anna")
    people.open("people")
    expect(page.locator(".named-person")).to_have_count(2)
    people.faults = [fault for fault in people.faults if "409" not in fault]  # the browser notes the question


# Saves the first face of a photo and nothing of its group, as a portrait would.
_SAVE_ONE_FACE = """async ([photo, name]) => {
  const { photos } = await (await fetch("/api/v1/photos")).json();
  const face = { photo: photos.find((one) => one.name === photo).id, face: 0 };
  const body = JSON.stringify({ name, photo_faces: [face] });
  await fetch("/api/v1/people", { method: "POST", headers: { "Content-Type": "application/json" }, body });
}"""


@pytest.mark.parametrize("device", ["phone"], indirect=True)
def test_guesses_are_called_guesses_and_can_be_decided(people: Page) -> None:
    page = people.open("search")
    page.evaluate(_SAVE_ONE_FACE, ["pair.jpg", "Anna"])
    page.reload()
    viewer = page.locator("#viewer")
    page.locator(".face-tile", has_text="Anna").click()
    expect(page.locator(".group h2")).to_contain_text(["with Anna", "maybe with Anna"])
    guess = page.locator('.tile:has([aria-label^="Open poor.jpg, with maybe Anna"])')
    expect(guess.locator(".tag.maybe")).to_have_text("Anna?")
    expect(guess.locator(".tag.maybe")).to_have_attribute("title", "This may be Anna")
    assert people.axe_findings() == []

    page.get_by_role("button", name="Sure matches only").click()
    expect(page.locator(".group h2")).to_have_count(1)
    page.click("#reset-filters")

    guess.locator(".open").click()
    people.show_faces()
    viewer.get_by_role("button", name="Yes, this is Anna").click()
    expect(viewer.locator(".said")).to_have_text("Confirmed")
    assert people.axe_findings() == []
    people.undo()
    expect(viewer.get_by_role("button", name="Yes, this is Anna")).to_be_visible()
    viewer.get_by_role("button", name="Not Anna").click()
    page.keyboard.press("Escape")
    expect(page.locator(".group h2")).to_have_text(["2 photos with Anna"])
    people.undo()
    expect(page.locator(".group h2")).to_contain_text(["with Anna", "maybe with Anna"])
