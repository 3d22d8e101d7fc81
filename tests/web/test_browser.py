"""The page in a real browser, on a desktop and on a phone: what a person does with it, step by step."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect
expect.set_options(timeout=60_000)  # however slow the machine

pytestmark = pytest.mark.xdist_group("web-browser")

_BROWSERS = (os.environ.get("SETNET_BROWSER"), shutil.which("chromium"), shutil.which("google-chrome"))
BROWSER = next((path for path in _BROWSERS if path), None)
_OFF = ("gpu", "quic", "background-networking", "component-update", "sync")
FLAGS = ["--no-sandbox", "--no-first-run", *(f"--disable-{part}" for part in _OFF)]
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "color_scheme": "dark",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("no browser: install chromium (apt-get install chromium), or set SETNET_BROWSER")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def portraits(portrait: Callable[[str], bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("portraits")
    files = {person: place / f"{person}.jpg" for person in ("P001", "P003", "P005")}
    for person, file in files.items():
        file.write_bytes(portrait(person))
    return files


class Page:
    """A page that remembers everything that went wrong on it."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.faults: list[str] = []
        self.url = url
        self.page.on(
            "console", lambda m: self.faults.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on(
            "request",
            lambda r: self.faults.append(r.url) if not r.url.startswith((url, "data:", "blob:")) else None,
        )

    def open(self, view: str = "search") -> Any:
        self.page.goto(f"{self.url}/#{view}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def add(self, *files: Path) -> None:
        with self.page.expect_file_chooser() as chooser:
            self.page.click("#add-photos")
        chooser.value.set_files(list(files))
        self.page.locator("#picker .pick").nth(len(files) - 1).wait_for()
        self.page.click("#picker .button.primary")
        self.page.locator("#picker").wait_for(state="detached")

    def drop(self, file: Path) -> None:
        """Drop a file on the page as a person does."""
        data = base64.b64encode(file.read_bytes()).decode()
        transfer = self.page.evaluate_handle(
            """([data, name]) => {
                const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
                const transfer = new DataTransfer();
                transfer.items.add(new File([bytes], name, { type: "image/jpeg" }));
                return transfer;
            }""",
            [data, file.name],
        )
        for kind in ("dragenter", "dragover", "drop"):
            self.page.dispatch_event("#drop", kind, {"dataTransfer": transfer})

    def paste(self, file: Path) -> None:
        """Paste an image from the clipboard."""
        data = base64.b64encode(file.read_bytes()).decode()
        self.page.evaluate(
            """(data) => {
                const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
                const clipboardData = new DataTransfer();
                clipboardData.items.add(new File([bytes], "image.jpg", { type: "image/jpeg" }));
                dispatchEvent(new ClipboardEvent("paste", { clipboardData }));
            }""",
            data,
        )

    def names(self) -> list[str]:
        labels = self.page.locator(".tile .open").evaluate_all("all => all.map((x) => x.ariaLabel)")
        return [label.split()[1].rstrip(",") for label in labels]

    def serious_findings(self) -> list[str]:
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{v['id']}: {v['nodes'][0]['html'][:120]}"
            for v in found
            if v["impact"] in ("serious", "critical")
        ]


@pytest.fixture(scope="module")
def served(
    made: Any, tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., Any]
) -> Iterator[str]:
    place = tmp_path_factory.mktemp("browsed")
    shutil.copytree(made.library, place / "library")
    with start_server(place / "library", place / "sets") as server:
        yield server.url


@pytest.fixture(params=["desktop", "phone"])
def surface(request: pytest.FixtureRequest, browser: Any, served: str) -> Iterator[Page]:
    page = Page(browser, served, **(DESKTOP if request.param == "desktop" else PHONE))
    yield page
    page.context.close()
    assert page.faults == []


def test_a_person_finds_their_friends(surface: Page, portraits: dict[str, Path]) -> None:
    page = surface.open()
    expect(page.locator(".tile").first).to_be_visible()  # the library to begin with

    # Drop a photo, click its face.
    surface.drop(portraits["P001"])
    face = page.locator("#picker .pick")
    expect(face).to_have_attribute("aria-pressed", "true")
    face.click()
    expect(page.locator("#picker .button.primary")).to_be_disabled()
    face.click()
    page.click("#picker .button.primary")
    expect(page.locator(".group > h2").first).to_contain_text("With Person 1")

    # Pick two more at once; they are different people and become two.
    surface.add(portraits["P003"], portraits["P005"])
    expect(page.locator(".person")).to_have_count(3)
    expect(page.locator(".group > h2").first).to_contain_text("All 3")
    groups = page.locator(".group > h2").all_inner_texts()
    assert [g.split()[0] for g in groups] == ["All", "2", "1"]
    assert "2 of 3" in groups[1]
    _boxes_are_where_the_faces_are(page)
    expect(page.locator(".summary")).to_contain_text("5 searched in")
    assert surface.serious_findings() == []

    _toggles_narrow_the_answer(surface)
    _large_view(surface)
    _a_person_is_saved_and_found_again(surface)


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


def _toggles_narrow_the_answer(surface: Page) -> None:
    page = surface.page
    if not page.locator(".filter-grid").is_visible():
        page.click(".filters > summary")
    tiles = page.locator(".tile")

    def reset() -> None:
        page.click("#reset-filters")
        expect(page.locator(".group")).to_have_count(3)

    page.get_by_label("All", exact=True).check()
    expect(tiles).to_have_count(1)
    page.get_by_label("At least", exact=True).check()
    expect(page.locator(".group")).to_have_count(2)
    page.fill("#at-least", "3")
    expect(tiles).to_have_count(1)
    reset()
    page.check("#only")
    expect(page.locator('[aria-label^="Open others.jpg"]')).to_have_count(0)
    reset()
    page.get_by_label("Taken until").fill("2017-01-01")
    expect(page.locator('[aria-label^="Open three.jpg"]')).to_have_count(0)
    page.get_by_label("Taken from").fill("2017-01-01")
    expect(page.locator(".empty h2")).to_have_text("No photo fits")
    reset()
    page.get_by_label("At least this many faces").fill("3")
    expect(tiles).to_have_count(1)
    reset()
    page.fill("#folder", "/nowhere")
    page.locator("#folder").press("Enter")
    expect(page.locator(".empty h2")).to_have_text("No photo fits")
    reset()
    for mode in ("Fast", "Set", "Exact"):
        page.get_by_label(mode, exact=True).check()
        expect(page.locator(".summary")).to_contain_text({"Set": "set vectors"}.get(mode, mode.lower()))
        expect(page.locator(".tile .open").first).to_have_attribute(
            "aria-label", "Open three.jpg, with Person 1, Person 2, Person 3"
        )
    page.get_by_label("Photos without Person 3").click()
    expect(page.locator('[aria-label^="Open three.jpg"]')).to_have_count(0)
    expect(page.locator(".group > h2").first).to_contain_text("All 2")
    page.get_by_label("Photos without Person 3").click()
    expect(page.locator(".group")).to_have_count(3)


def _large_view(surface: Page) -> None:
    page = surface.page
    page.locator('[aria-label^="Open three.jpg"]').click()
    viewer = page.locator("#viewer")
    expect(viewer.locator(".title b")).to_have_text("three.jpg")
    expect(viewer.locator(".target")).to_have_count(3)
    expect(viewer.get_by_label("Download")).to_have_attribute(
        "href", "/api/v1/photos/" + str(_id(page, "three.jpg")) + "/file?download=true"
    )
    assert surface.serious_findings() == []
    page.keyboard.press("ArrowRight")
    expect(viewer.locator(".title b")).not_to_have_text("three.jpg")
    page.keyboard.press("ArrowLeft")
    expect(viewer.locator(".title b")).to_have_text("three.jpg")
    viewer.get_by_role("button", name="Not Person 2").click()  # hides that match in this query
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)
    expect(page.locator(".group > h2").first).to_contain_text("2 of 3")

    # Click a face that is not in the query: it joins it.
    page.locator('[aria-label^="Open others.jpg"]').click()
    page.locator("#viewer .target:not(.match)").first.click()
    expect(page.locator(".person")).to_have_count(4)
    expect(page.locator(".box.match[data-name='Person 4']").first).to_be_visible()
    page.get_by_label("Remove Person 4 from the query").click()
    expect(page.locator(".person")).to_have_count(3)


def _id(page: Any, name: str) -> str:
    found: str = page.locator(f'.tile:has([aria-label^="Open {name}"])').get_attribute("data-photo")
    return found


def _a_person_is_saved_and_found_again(surface: Page) -> None:
    page = surface.page
    name = page.get_by_label("Name of Person 1")
    name.fill("Zoë 山田")
    name.press("Enter")
    page.get_by_label("Save Zoë 山田 in the library").click()
    expect(page.locator(".chip")).to_have_text("Zoë 山田")

    surface.open("people")
    card = page.locator(".person-card")
    expect(card).to_contain_text("1 example face")
    assert surface.serious_findings() == []
    page.get_by_label("Rename Zoë 山田").click()
    page.fill("#dialog-input", "Zoë O'Hara")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Zoë O'Hara")

    page.get_by_role("button", name="Find photos").click()
    expect(page.locator(".group > h2").first).to_contain_text("With Zoë O'Hara")
    assert {"three.jpg", "pair.jpg"} <= set(surface.names())
    page.locator(".chip").click()  # a chip takes its person out again
    expect(page.locator(".person")).to_have_count(0)

    surface.open("people")
    page.get_by_role("button", name="Remove Zoë O'Hara").click()
    page.get_by_role("button", name="Cancel").click()
    expect(card).to_have_count(1)
    page.get_by_role("button", name="Remove Zoë O'Hara").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator(".empty h2")).to_have_text("Nobody saved yet")


def test_several_examples_make_one_person(surface: Page, portraits: dict[str, Path]) -> None:
    page = surface.open()
    surface.paste(portraits["P001"])
    page.locator("#picker .pick").wait_for()
    page.click("#picker .button.primary")
    page.locator("#picker").wait_for(state="detached")
    with page.expect_file_chooser() as chooser:
        page.get_by_label("Add another photo of Person 1").click()
    chooser.value.set_files([portraits["P001"]])
    page.locator("#picker .pick").wait_for()
    page.click("#picker .button.primary")
    expect(page.locator(".person .count")).to_have_text("2 faces")
    expect(page.locator(".person")).to_have_count(1)


def test_further_pages_belong_to_the_question_that_was_asked(
    surface: Page, portraits: dict[str, Path]
) -> None:
    # Two photos a page, and a filter that changes just when a page has come.
    surface.page.add_init_script(
        """const real = window.fetch;
        window.fetch = async (url, options) => {
          if (!String(url).endsWith("/search")) return real(url, options);
          const body = JSON.stringify({ ...JSON.parse(options.body), k: 2 });
          const answer = await real(url, { ...options, body });
          (await import("/static/js/query.js")).query.filters.minFaces = "1";
          return answer;
        };"""
    )
    page = surface.open()
    surface.add(portraits["P003"])
    expect(page.locator(".group > h2").first).to_have_text("With Person 1 3 photos")
    expect(page.locator(".toast.error")).to_have_count(0)


def test_index_view_tells_folders_failures_and_a_run(surface: Page, made: Any) -> None:
    page = surface.open("index")
    expect(page.locator(".folders")).to_contain_text(str(made.photos))
    expect(page.locator(".failures")).to_contain_text("broken.jpg")
    assert surface.serious_findings() == []
    page.get_by_role("button", name="Look for new photos").click()
    expect(page.locator("#run-title")).to_have_text("Up to date")
    page.fill("#new-folder", "/nowhere/at/all")
    page.get_by_role("button", name="Index it").click()
    expect(page.locator(".toast.error")).to_contain_text("no folder")
    surface.faults = [f for f in surface.faults if "422" not in f]  # the browser notes the refused request


def test_everything_is_reached_by_keyboard(browser: Any, served: str) -> None:
    surface = Page(browser, served, **DESKTOP)
    page = surface.open()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"brand", "add-photos", "open"} <= reached
    page.locator(".tile .open").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#viewer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".tile .open").first).to_be_focused()
    surface.context.close()


def test_empty_library_token_and_forgetting(
    browser: Any, made: Any, tmp_path: Path, start_server: Callable[..., Any]
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    token = "a-token-for-the-browser"
    with start_server(tmp_path / "library", tmp_path / "sets", SETNET_TOKEN=token) as server:
        surface = Page(browser, server.url, **DESKTOP)
        page = surface.page
        page.goto(server.url)
        page.fill("#dialog-input", "not the right one")
        page.keyboard.press("Enter")
        expect(page.locator(".toast.error")).to_contain_text("not the token")
        page.locator("#dialog-input").wait_for()
        page.fill("#dialog-input", token)
        page.keyboard.press("Enter")
        expect(page.locator(".tile").first).to_be_visible()
        assert page.evaluate("document.cookie") == ""  # scripts cannot read it

        page.goto(f"{server.url}/#people")
        page.click("#forget-everything")
        page.get_by_role("button", name="Forget everything", exact=True).click()
        expect(page.locator("#library-size")).to_have_text("0 photos")
        page.goto(f"{server.url}/#search")
        expect(page.locator("#view-search .empty h2")).to_have_text("No photos yet")
        other = Page(browser, server.url, **PHONE)
        other.page.goto(f"{server.url}/#token={token}")  # the address that was printed
        expect(other.page.locator(".empty h2")).to_have_text("No photos yet")
        assert "token" not in other.page.url
        assert other.faults == []
        other.context.close()
        surface.context.close()
