"""What a person does with the search view, step by step."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from setnet.library import Example, Library
from tests.support.live_server import server_here

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")


@pytest.mark.parametrize("device", ["desktop", pytest.param("phone", marks=pytest.mark.soak)], indirect=True)
def test_a_person_finds_their_friends(surface: Page, portraits: dict[str, Path]) -> None:
    page = surface.open()
    expect(page.locator(".tile").first).to_be_visible()  # the library to begin with

    # Drop a photo: its only face is looked for at once.
    surface.drop(portraits["P001"])
    expect(page.locator(".group h2").first).to_contain_text("with Person 1")

    # Pick two more at once; they are different people and become two.
    surface.add(portraits["P003"], portraits["P005"])
    expect(page.locator(".person")).to_have_count(3)
    expect(page.locator(".group h2").first).to_have_text("1 photo with Person 1, Person 2, and Person 3")
    some, one = page.locator(".group h2").all_inner_texts()[1:]
    assert "with two of them" in some
    assert "with only one of them" in one
    expect(page.locator(".tile")).to_have_count(1)  # the others are folded
    surface.unfold()
    _boxes_are_where_the_faces_are(page)
    _names_are_on_no_other_face(page)
    expect(page.locator(".summary")).to_have_text("4 photos")
    expect(page.locator(".group h3").first).to_contain_text("Person")
    assert surface.axe_findings() == []

    _toggles_narrow_the_answer(surface)
    _large_view(surface)
    _a_person_is_saved_and_found_again(surface, portraits["P001"])


def _boxes_are_where_the_faces_are(page: Any) -> None:
    """Compare the boxes on the screen with those of the answer, scaled to the picture on the screen."""
    tile = page.locator('.tile:has([aria-label^="Open three.jpg"])')
    photo = page.evaluate(
        "id => fetch(`/api/v1/photos/${id}`).then((r) => r.json())", tile.get_attribute("data-photo")
    )
    frame = tile.bounding_box()
    expected = sorted(
        [
            frame["x"] + f["box"][0] / photo["width"] * frame["width"],
            frame["y"] + f["box"][1] / photo["height"] * frame["height"],
        ]
        for f in photo["faces"]
    )
    shown = sorted([b["x"], b["y"]] for b in (box.bounding_box() for box in tile.locator(".box.match").all()))
    assert len(shown) == 3
    for (x, y), (want_x, want_y) in zip(shown, expected, strict=True):
        assert abs(x - want_x) < 3
        assert abs(y - want_y) < 3
    assert sorted(tile.locator(".box.match").evaluate_all("all => all.map((x) => x.dataset.name)")) == [
        "Person 1",
        "Person 2",
        "Person 3",
    ]


def _names_are_on_no_other_face(page: Any) -> None:
    """Compare the names on the screen with the boxes of whoever else is in the photo."""
    overlaps = page.locator(".tile").evaluate_all(
        """tiles => tiles.flatMap((tile) => [...tile.querySelectorAll(".tag")].flatMap((tag) => {
            const name = tag.textContent, a = tag.getBoundingClientRect();
            const others = [...tile.querySelectorAll(".box")].filter((box) => box.dataset.name !== name);
            return others.map((box) => box.getBoundingClientRect()).filter((b) =>
                a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1
            ).map(() => name);
        }))"""
    )
    assert overlaps == []


def _toggles_narrow_the_answer(surface: Page) -> None:
    page = surface.page
    tiles = page.locator("#view-search .tile")

    def reset() -> None:
        page.keyboard.press("Escape")  # closes the panel of a filter
        page.click("#reset-filters")
        expect(page.locator(".group h2")).to_have_count(3)

    surface.unfold()

    page.click("#filter-need")
    page.get_by_label("All of them", exact=True).check()
    expect(tiles).to_have_count(1)
    page.get_by_label("At least", exact=True).check()
    expect(page.locator(".group h2")).to_have_count(2)
    page.fill("#at-least", "3")
    expect(tiles).to_have_count(1)
    assert surface.axe_findings() == []
    reset()
    page.click("#only")
    expect(page.locator('[aria-label^="Open others.jpg"]')).to_have_count(0)
    reset()
    page.click("#filter-date")
    page.get_by_label("Taken until").fill("2017-01-01")
    expect(page.locator('[aria-label^="Open three.jpg"]')).to_have_count(0)
    page.get_by_label("Taken from").fill("2017-01-01")
    expect(page.locator("#view-search .empty h2")).to_have_text("No photo has all three")
    reset()
    page.click("#filter-faces")
    page.get_by_label("At least this many faces").fill("3")
    expect(tiles).to_have_count(1)
    reset()
    page.click("#filter-folder")
    page.fill("#folder", "/nowhere")
    page.locator("#folder").press("Enter")
    expect(page.locator("#view-search .empty h2")).to_have_text("No photo has all three")
    reset()
    page.click("#filter-mode")
    for mode, shown in (("fast", "Advanced: fast"), ("set", "Advanced: set"), ("exact", "Advanced")):
        page.get_by_label(f"({mode})").check()
        expect(page.locator("#filter-mode")).to_contain_text(shown)
        expect(page.locator(".tile .open").first).to_have_attribute(
            "aria-label", re.compile("^Open three.jpg, with Person 1, Person 2, Person 3")
        )
    page.keyboard.press("Escape")
    surface.act_on("Person 3", "Photos without Person 3")
    expect(page.locator('[aria-label^="Open three.jpg"]')).to_have_count(0)
    expect(page.locator(".group h2").first).to_contain_text(" and ")
    surface.act_on("Person 3", "Photos with Person 3")
    expect(page.locator(".group h2")).to_have_count(3)
    surface.unfold()


def _large_view(surface: Page) -> None:
    page = surface.page
    page.locator('[aria-label^="Open three.jpg"]').click()
    viewer = page.locator("#viewer")
    expect(viewer.locator(".title span")).to_have_text("three.jpg")
    expect(viewer.locator(".target")).to_have_count(3)
    expect(viewer.get_by_label("Download")).to_have_attribute(
        "href", "/api/v1/photos/" + str(_id(page, "three.jpg")) + "/file?download=true"
    )
    assert surface.axe_findings() == []
    if page.evaluate("matchMedia('(hover: none)').matches"):
        _swipe(viewer)
    else:
        page.keyboard.press("ArrowRight")
    expect(viewer.locator(".title span")).not_to_have_text("three.jpg")
    page.keyboard.press("ArrowLeft")
    expect(viewer.locator(".title span")).to_have_text("three.jpg")
    surface.show_faces()
    viewer.get_by_role("button", name="Not Person 2").click()  # hides that match in this query
    expect(viewer.locator(".title span")).to_have_text("three.jpg")  # in another group now, still looked at
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)
    expect(page.locator(".group h2").first).to_contain_text("with two of them")

    # Click a face that is not in the query: it joins it.
    page.locator('[aria-label^="Open others.jpg"]').click()
    surface.show_faces()
    page.locator("#viewer .target:not(.match)").first.click()
    expect(page.locator(".person")).to_have_count(4)
    surface.unfold()
    expect(page.locator(".box.match[data-name='Person 4']").first).to_be_visible()
    page.get_by_label("Remove Person 4 from the query").click()
    expect(page.locator(".person")).to_have_count(3)


def _swipe(viewer: Any) -> None:
    """Move the photo aside with a finger: it follows, and the next photo comes behind it."""
    left = viewer.locator(".frame").bounding_box()["x"]
    finger = viewer.page.context.new_cdp_session(viewer.page)
    for kind, x in (("touchStart", 300), ("touchMove", 250), ("touchMove", 150)):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": 300}]})
    expect(viewer.locator(".near")).to_be_visible()
    aside = "limit => document.querySelector('#viewer .frame').getBoundingClientRect().x < limit"
    viewer.page.wait_for_function(aside, arg=left - 100)  # the page follows with its next frame
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(viewer.locator(".near")).to_be_hidden()


def _id(page: Any, name: str) -> str:
    found: str = page.locator(f'.tile:has([aria-label^="Open {name}"])').get_attribute("data-photo")
    return found


def _a_person_is_saved_and_found_again(surface: Page, portrait: Path) -> None:
    page = surface.page
    surface.rename("Person 1", "Zoë 山田")
    surface.act_on("Zoë 山田", "Save Zoë 山田 in the library")
    expect(page.locator(".toast", has_text="is saved")).to_be_visible()

    surface.rename("Zoë 山田", "Zoë O'Hara")  # renames the person
    expect(page.locator(".person .called").first).to_have_text("Zoë O'Hara")
    surface.undo()
    expect(page.locator(".person .called").first).to_have_text("Zoë 山田")
    surface.rename("Zoë 山田", "Zoë O'Hara")
    expect(page.locator(".person .called").first).to_have_text("Zoë O'Hara")

    surface.open("people")
    page.locator(".named-person", has_text="Zoë O'Hara").click()
    page.get_by_role("button", name="Find photos").click()
    # Without anybody else in the heading: that of the query before begins alike.
    expect(page.locator("#view-search .group h2").first).to_have_text(re.compile(r"with Zoë O'Hara\s*$"))
    assert {"three.jpg", "pair.jpg"} <= set(surface.names())
    page.get_by_label("Remove Zoë O'Hara from the query").click()
    expect(page.locator(".person")).to_have_count(0)
    expect(page.locator(".face-tile", has_text="Zoë O'Hara")).to_be_visible()
    surface.add(portrait)  # whoever is saved is recognised
    expect(page.locator(".person .called")).to_have_text("Zoë O'Hara")
    page.get_by_label("Remove Zoë O'Hara from the query").click()

    surface.open("people")
    page.locator(".named-person").click()
    page.get_by_role("button", name="Remove", exact=True).first.click()
    expect(page.locator("#people-title")).to_be_visible()
    expect(page.locator(".named-person")).to_have_count(0)
    surface.undo()
    expect(page.locator("#person-title")).to_have_text("Zoë O'Hara")
    page.get_by_role("button", name="Remove", exact=True).first.click()
    expect(page.locator("#people-title")).to_be_visible()
    page.reload()
    expect(page.locator("#people-title")).to_be_visible()
    expect(page.locator(".named-person")).to_have_count(0)
    # What the person's page still asked for when the person was removed is not there any more.
    late = ("/people/", "person=")
    surface.faults = [f for f in surface.faults if "404" not in f or not any(part in f for part in late)]


def test_a_taken_name_asks_and_mixed_examples_warn(people: Page, portraits: dict[str, Path]) -> None:
    page = people.open()
    for person in ("P003", "P005"):
        people.add(portraits[person])
        surface = people
        surface.rename(page.locator(".person").last.get_attribute("aria-label"), "Zoë")
        surface.act_on("Zoë", "Save Zoë in the library")
    question = page.get_by_role("dialog", name="Is this the same Zoë?")
    expect(question).to_contain_text("looks different")
    question.get_by_role("button", name="Yes, add to Zoë").click()
    expect(page.locator(".toast.warn")).to_contain_text("do not look like the same person")
    expect(page.locator(".person")).to_have_count(1)  # one card for one person
    people.undo()
    expect(page.locator(".person")).to_have_count(2)
    people.faults = [fault for fault in people.faults if "409" not in fault]  # the browser notes the question


@pytest.mark.parametrize("device", ["phone"], indirect=True)
def test_several_examples_make_one_person(surface: Page, portraits: dict[str, Path]) -> None:
    page = surface.open()
    surface.paste(portraits["P001"])
    page.locator(".person").wait_for()
    expect(page.locator("#picker")).to_have_count(0)
    with page.expect_file_chooser() as chooser:
        surface.act_on("Person 1", "Add another photo of Person 1")
    chooser.value.set_files([portraits["P001"]])
    face = page.locator("#picker .pick")
    expect(face).to_have_attribute("aria-pressed", "true")
    face.click()
    expect(page.locator("#picker .button.primary")).to_be_disabled()
    face.click()
    page.click("#picker .button.primary")
    expect(page.locator(".person .count")).to_have_text("2 faces")
    expect(page.locator(".person")).to_have_count(1)


def test_further_pages_belong_to_the_question_that_was_asked(
    surface: Page, portraits: dict[str, Path]
) -> None:
    # Two photos a page, and an order that changes just when a page has come.
    surface.page.add_init_script(
        """const real = window.fetch;
        window.fetch = async (url, options) => {
          if (!String(url).endsWith("/search")) return real(url, options);
          const body = JSON.stringify({ ...JSON.parse(options.body), limit: 2 });
          const answer = await real(url, { ...options, body });
          if (!window.turned) document.getElementById("order").click();
          window.turned = true;
          return answer;
        };"""
    )
    page = surface.open()
    surface.add(portraits["P003"])
    expect(page.locator(".group h2").first).to_have_text("3 photos with Person 1")
    expect(page.locator(".toast.error")).to_have_count(0)


def test_searching_is_said_from_the_first_search_on(surface: Page, portraits: dict[str, Path]) -> None:
    page = surface.open()
    held: list[Any] = []
    page.route("**/api/v1/search", lambda route: held.append(route))
    surface.add(portraits["P003"])
    expect(page.locator(".summary")).to_be_visible()
    expect(page.locator(".summary")).to_have_text("Searching\u2026")
    held[-1].continue_()
    expect(page.locator(".summary")).to_have_text("3 photos")


def test_everybody_opens_with_more_people_than_have_room(
    new_page: Callable[..., Page], made: Any, tmp_path: Path
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        for number in range(30):
            vector = np.eye(library.dim, dtype=np.float32)[number]
            library.people.save(f"Person {number:02}", [Example(vector)])
    with server_here(tmp_path / "library") as url:
        surface = new_page(url)
        page = surface.open()
        rows = page.get_by_role("group", name="People to look for")
        assert rows.evaluate("rows => rows.offsetHeight") < 240  # two rows
        rows.get_by_role("button", name="All").click()
        panel = page.get_by_role("dialog", name="People")
        expect(panel.get_by_role("button", name="Look for Person")).to_have_count(30)
        panel.get_by_role("textbox").fill("person 14")
        panel.get_by_role("button", name="Look for Person 14").click()
        expect(page.locator(".person .called")).to_have_text("Person 14")
        expect(panel).to_be_visible()  # for the next one
        panel.get_by_role("textbox").fill("person 15")
        panel.get_by_role("button", name="Without Person 15").click()
        expect(page.locator(".person.is-without .called")).to_have_text("Person 15")
        assert surface.axe_findings() == []
        assert surface.faults == []
        surface.context.close()
