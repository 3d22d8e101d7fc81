"""A real browser on the page of a real server, on a desktop and on a phone."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_server import server_here

_BROWSERS = (os.environ.get("SETNET_BROWSER"), shutil.which("chromium"), shutil.which("google-chrome"))
BROWSER = next((path for path in _BROWSERS if path), None)
_OFF = ("gpu", "quic", "background-networking", "component-update", "sync")
FLAGS = ["--no-sandbox", "--no-first-run", *(f"--disable-{part}" for part in _OFF)]
PATIENCE = int(os.environ.get("SETNET_BROWSER_PATIENCE", "60000"))  # milliseconds: however slow the machine
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "color_scheme": "dark",
}


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A browser for this folder: while it is open, no test can run an event loop of its own."""
    if BROWSER is None:
        pytest.skip("no browser: install chromium (apt-get install chromium), or set SETNET_BROWSER")
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is needed for tests in a browser"
    )
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def portraits(portrait: Callable[[str], bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("portraits")
    files = {person: place / f"{person}.jpg" for person in ("P001", "P003", "P005")}
    for person, file in files.items():
        file.write_bytes(portrait(person))
    return files


# Resolves when what appears has appeared: animations that run and end, such as a message's.
_SETTLED = """() => Promise.race([
  new Promise((done) => setTimeout(done, 2000)),
  Promise.allSettled(document.getAnimations().filter((one) => one.playState === "running"
    && one.effect.getComputedTiming().endTime !== Infinity).map((one) => one.finished)).then(() => null),
])"""


# What an open dialog makes inert, and axe takes for the whole page.
_BEHIND_DIALOGS = ("page-has-heading-one", "landmark-no-duplicate-banner", "landmark-unique")


class Page:
    """A page that remembers everything that went wrong on it."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.faults: list[str] = []
        self.url = url
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on(
            "request",
            lambda r: self.faults.append(r.url) if not r.url.startswith((url, "data:", "blob:")) else None,
        )

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.text} {message.location.get('url', '')}")

    def open(self, view: str = "search") -> Any:
        self.page.goto(f"{self.url}/#{view}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def add(self, *files: Path) -> None:
        people = self.page.locator(".person")
        before = people.count()
        with self.page.expect_file_chooser() as chooser:
            self.page.click("#add-photos")
        chooser.value.set_files(list(files))
        if len(files) > 1:
            self.page.locator("#picker .pick").nth(len(files) - 1).wait_for()
            self.page.click("#picker .button.primary")
        people.nth(before).wait_for()  # one face in one photo is a search at once
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

    def look_for(self, line: str) -> None:
        """Type a line into the search field, as "Anna Ben -Carl 2019"."""
        self.page.fill("#search-field", line)
        self.page.keyboard.press("Enter")

    def unfold(self) -> None:
        """Show the photos with only some of the people too."""
        self.page.wait_for_selector("#view-search[aria-busy=false]")
        folded = self.page.locator(".fold[aria-expanded=false]")
        while folded.count():
            folded.first.click()

    def act_on(self, person: str, label: str) -> None:
        """Open the menu of the last person of the query who is called so, and press something in it."""
        pills = self.page.locator(".person").filter(has=self.page.get_by_text(person, exact=True))
        pills.last.locator(".who").click()
        self.page.get_by_label(label, exact=True).click()

    def rename(self, person: str, name: str) -> None:
        """Give a person of the query another name."""
        pills = self.page.locator(".person").filter(has=self.page.get_by_text(person, exact=True))
        pills.last.locator(".who").click()
        self.page.get_by_label(f"Name of {person}").fill(name)
        self.page.keyboard.press("Enter")

    def names(self) -> list[str]:
        labels = self.page.locator(".tile .open").evaluate_all("all => all.map((x) => x.ariaLabel)")
        return [label.split()[1].rstrip(",") for label in labels]

    def group_of(self, photo: str, face: int) -> str:
        """Return the id of the group that has a face, by its photo and its number from the left."""
        found: str = self.page.evaluate(
            """async ([photo, face]) => {
                const get = (path) => fetch(`/api/v1/${path}`).then((answer) => answer.json());
                for (const { id } of (await get("groups?state=all&limit=200")).groups) {
                    const { members } = await get(`groups/${id}?limit=200`);
                    if (members.some((m) => m.path.endsWith(photo) && m.face === face)) return id;
                }
            }""",
            [photo, face],
        )
        return found

    def name_group(self, photo: str, face: int, name: str) -> None:
        """Name the group that has a face, as a person does."""
        field = self.page.locator(f'[data-group="{self.group_of(photo, face)}"]').get_by_role("combobox")
        field.fill(name)
        field.press("Enter")
        self.page.locator(".named-person", has_text=name).wait_for()

    def show_faces(self) -> None:
        """Let the large view show its faces and boxes, which a phone shows when asked."""
        for name in ("Faces", "Show the boxes"):
            button = self.page.locator("#viewer").get_by_role("button", name=name)
            if "true" not in (button.get_attribute("aria-expanded"), button.get_attribute("aria-pressed")):
                button.click()

    def undo(self) -> None:
        """Press Undo in the message of the latest change."""
        self.page.get_by_role("button", name="Undo").click()
        self.page.locator(".toast", has_text="Undone.").first.wait_for()

    def axe_findings(self) -> list[str]:
        from axe_playwright_python.sync_playwright import Axe

        self.page.evaluate(_SETTLED)  # what is still fading in has little contrast
        found = Axe().run(self.page).response["violations"]
        return [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in found if v["id"] not in _BEHIND_DIALOGS]


@pytest.fixture(scope="session")
def served(
    made: Any, tmp_path_factory: pytest.TempPathFactory, start_server: Callable[..., Any]
) -> Iterator[str]:
    place = tmp_path_factory.mktemp("browsed")
    shutil.copytree(made.library, place / "library")
    with start_server(place / "library") as server:
        yield server.url


@pytest.fixture(scope="session")
def doubtful(
    made: Any, compose: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], Path]:
    """Return the function that copies a library of the album in which not everything is sure.

    `poor.jpg` is a photo of P001 without sharpness; the faces of P001 and P003 in `three.jpg` are groups of
    their own.
    """
    from PIL import Image

    from setnet.library import Library

    place = tmp_path_factory.mktemp("doubtful")
    shutil.copytree(made.photos, place / "photos")
    poor = place / "photos" / "poor.jpg"
    compose(poor, ("P001",), tile=3)
    image = Image.open(poor)
    image.resize((image.width // 12, image.height // 12)).resize(image.size).save(poor)
    with Library.create(place / "library") as library:
        library.index([place / "photos"], workers=0)
        three = next(photo.id for photo in library.photos.latest(10) if photo.path.name == "three.jpg")
        for face in (1, 2):
            (group,) = {
                group.id
                for group in library.groups.page()
                if any((m.photo_id, m.face) == (three, face) for m in library.groups.members(group.id))
            }
            library.groups.name(group, "Somebody", without=[(three, face)])
            library.people.remove("Somebody")  # and what was said of them
    return lambda to: Path(shutil.copytree(place / "library", to))


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    """The kind of window: a desktop, unless a test asks for others because the layout matters."""
    name: str = getattr(request, "param", "desktop")
    return name


@pytest.fixture
def people(
    device: str,
    doubtful: Callable[[Path], Path],
    new_page: Callable[..., Page],
    tmp_path: Path,
) -> Iterator[Page]:
    """A window on a library of its own, in which not everything is sure and nobody is named."""
    with server_here(doubtful(tmp_path / "library")) as url:
        page = new_page(url, device)
        yield page
        page.context.close()
        assert page.faults == []


@pytest.fixture
def new_page(browser: Any) -> Callable[..., Page]:
    """Return the function that opens a window on an address."""
    return lambda url, device="desktop": Page(browser, url, **(DESKTOP if device == "desktop" else PHONE))


@pytest.fixture
def surface(device: str, new_page: Callable[..., Page], served: str) -> Iterator[Page]:
    page = new_page(served, device)
    yield page
    page.context.close()
    assert page.faults == []
