"""The same twenty questions to Python, the command line, REST, the client and the page: one answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import httpx
import pytest

from setnet.client import Client, ServerError
from setnet.errors import InvalidInputError
from setnet.library import Conditions, Library, PhotoQuery
from tests.support.command_line import answered, called

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

pytestmark = pytest.mark.xdist_group("web-browser")

SAVED = {
    "Anna": "P001",
    "Ben": "P003",
    "Cleo": "P005",
    "Dora": "P010",
    "Zoe": "P002",
}  # Zoe is in no photo, one face is like her


@dataclass(frozen=True)
class Question:
    people: tuple[str, ...]
    without: tuple[str, ...] = ()
    at_least: int | None = None
    only: bool = False
    sure: bool = False
    after: str | None = None
    before: str | None = None
    folder: str | None = None
    faces: tuple[int, int] | None = None
    kind: str | None = None
    mode: str = "exact"


QUESTIONS = (
    Question(("Anna",)),
    Question(("anna", "Ben")),
    Question(("Anna", "Ben", "Cleo")),
    Question(("Anna", "Ben"), at_least=2),
    Question(("Anna", "Ben", "Cleo"), at_least=2),
    Question(("Ben",), only=True),
    Question(("Anna", "Ben"), only=True),
    Question(("Ben",), without=("Anna",)),
    Question(("Anna", "Ben"), without=("Cleo", "Dora")),
    Question(("Anna", "Ben"), sure=True),
    Question(("Anna",), after="2018-01-01"),
    Question(("Dora",), before="2018-01-01"),
    Question(("Dora", "Ben"), folder="2016"),
    Question(("Dora", "Cleo"), faces=(3, 9)),
    Question(("Cleo",), kind="video"),
    Question(("Zoe",)),
    Question(("Zoe", "Cleo"), kind="photo"),
    Question(("Anna", "Cleo"), mode="set"),
    Question(("Anna", "Dora"), mode="fast", at_least=1),
    Question((), without=("Anna",)),
)


class Given(NamedTuple):
    """An answer: photos with who is in them, and whether surely; remarks. `photos` is None if refused."""

    photos: list[tuple[str, tuple[tuple[str, bool], ...]]] | None
    warnings: list[str]

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Given:
        photos = [
            (Path(hit["photo"]).name, tuple(sorted((m["person"], m["sure"]) for m in hit["matches"])))
            for hit in answer["hits"]
        ]
        return cls(photos, answer["warnings"])

    def on_page(self) -> Given:
        """Return the answer as the page shows it, by how many people; remarks are sentences."""
        if self.photos is None:
            return self
        return Given(
            sorted(self.photos, key=_by_people), [f"{text[0].upper()}{text[1:]}." for text in self.warnings]
        )


REFUSED = Given(None, [])


def _by_people(photo: tuple[str, tuple[tuple[str, bool], ...]]) -> tuple[int, str]:
    return -len(photo[1]), photo[0]


@dataclass(frozen=True)
class Surfaces:
    """One library, and every way to ask it."""

    path: Path
    library: Library
    client: Client
    url: str

    def python(self, question: Question) -> Given:
        q = question
        conditions = Conditions.parse(q.after, q.before, q.folder, q.faces, q.kind)
        given: dict[str, Any] = {} if q.at_least is None else {"at_least": q.at_least}
        try:
            query = PhotoQuery(
                q.people, q.without, mode=q.mode, only=q.only, sure=q.sure, conditions=conditions, **given
            )
            return Given.of(self.library.search(query).to_dict())
        except InvalidInputError:
            return REFUSED

    def command(self, question: Question) -> Given:
        fields = asdict(question) | {"faces": question.faces and "{}-{}".format(*question.faces)}
        names = {"at_least": "--at-least", "folder": "--in"}
        words: list[object] = [*question.people, "--library", self.path]
        for name in question.without:
            words += ["--without", name]
        for name, value in fields.items():
            if name not in ("people", "without") and value not in (None, False):
                words += [names.get(name, f"--{name}")] + ([] if value is True else [value])
        if not question.people:
            called("search", *words, "--json", code=2)
            return REFUSED
        expected = self.python(question).photos  # the exit status says whether there are any
        return Given.of(answered("search", *words, code=0 if expected else 1))

    def rest(self, question: Question) -> Given:
        body = self._conditions(question)
        body |= {role: [{"saved": n} for n in getattr(question, role)] for role in ("people", "without")}
        answer = httpx.post(f"{self.url}/api/v1/search", json=body)
        return REFUSED if answer.status_code == 422 else Given.of(answer.raise_for_status().json())

    def clients(self, question: Question) -> Given:
        people, without = question.people, question.without
        try:
            found = self.client.search(people, without=without, **self._conditions(question))
        except ServerError as error:
            if error.status != 422:
                raise
            return REFUSED
        return Given.of(found.model_dump())

    def _conditions(self, question: Question) -> dict[str, Any]:
        given = {name: v for name, v in asdict(question).items() if v is not None}
        for name in ("people", "without"):
            del given[name]
        if "faces" in given:
            given["min_faces"], given["max_faces"] = given.pop("faces")
        return given

    def page(self, question: Question, window: Page) -> Given:
        ids = {person.name: person.id for person in self.library.people}
        values = [("with", f"s{ids[name.capitalize()]}") for name in question.people]
        values += [("without", f"s{ids[name]}") for name in question.without]
        q = question
        to = q.before and str(date.fromisoformat(q.before) - timedelta(days=1))  # its whole day counts there
        least, most = q.faces or (None, None)
        some = {"need": "some", "atLeast": q.at_least} if q.at_least is not None else {}
        filters: dict[str, Any] = {
            "only": q.only,
            "sure": q.sure,
            "after": q.after,
            "before": to,
            "folder": q.folder,
        }
        filters |= {"minFaces": least, "maxFaces": most, "kind": q.kind, "mode": q.mode, **some}
        values += [(name, str(v).lower() if v is True else str(v)) for name, v in filters.items() if v]
        page = window.page
        if not page.url.startswith(self.url):
            window.open()
        address = f"search?{urlencode([*values, ('apart', 'true')])}"
        if question.people:
            with page.expect_response("**/api/v1/search"):
                page.evaluate("address => { location.hash = address; }", address)
            page.wait_for_selector("#view-search[aria-busy=false]")
        else:
            with page.expect_response("**/api/v1/timeline?**without=*"):
                page.evaluate("address => { location.hash = address; }", address)
            page.wait_for_selector("#view-search[aria-busy=false]")
        window.unfold()
        shown = page.evaluate(_READ)
        if not question.people:  # the page alone shows all other photos then
            names = {name for name, _ in shown["photos"]}
            for who in question.without:
                theirs = {found.photo.path.name for found in self.library.people.photos(who).photos}
                assert names
                assert not names & theirs
            return REFUSED
        assert shown["summary"].split()[0] == str(len(shown["photos"]))
        photos = [
            (name, tuple(sorted((who, sure) for who, sure in people))) for name, people in shown["photos"]
        ]
        return Given(sorted(photos, key=_by_people), shown["warnings"])


# The answer as somebody reads it from the page.
_READ = """() => ({
  photos: [...document.querySelectorAll("#view-search .tile")].map((tile) => [
    tile.querySelector(".open").ariaLabel.split(" ")[1].replace(",", ""),
    [...tile.querySelectorAll(".box.match")].map((box) => [box.dataset.name, box.classList.contains("sure")]),
  ]),
  warnings: [...document.querySelectorAll("#view-search .notice p")].map((one) => one.textContent),
  summary: document.querySelector("#view-search .summary").textContent,
})"""


@pytest.fixture(scope="module")
def surfaces(
    made: Any,
    portrait_file: Callable[[str], Path],
    start_server: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Surfaces]:
    """A real server and a library of the album, in which four people and one more are saved by portraits."""
    place = tmp_path_factory.mktemp("surfaces")
    path = Path(shutil.copytree(made.library, place / "library"))
    with Library.open(path) as library:
        for name, person in SAVED.items():
            library.people.add_photos(name, [str(portrait_file(person))])
        with start_server(path) as server, Client(server.url) as client:
            yield Surfaces(path, library, client, server.url)


@pytest.fixture
def window(new_page: Callable[..., Page], surfaces: Surfaces) -> Iterator[Page]:
    page = new_page(surfaces.url)
    yield page
    page.context.close()
    assert page.faults == []


def test_twenty_questions_have_one_answer_each(surfaces: Surfaces, window: Page, made: Any) -> None:
    assert len(QUESTIONS) == 20
    for question in QUESTIONS:
        if question.folder:
            question = replace(question, folder=str(made.photos / question.folder))
        expected = surfaces.python(question)
        assert surfaces.command(question) == expected, question
        assert surfaces.rest(question) == expected, question
        assert surfaces.clients(question) == expected, question
        assert surfaces.page(question, window) == expected.on_page(), question
        assert all(people for _, people in expected.photos or []), "a photo with nobody who was asked for"
        assert not {who for _, people in expected.photos or [] for who, _ in people} & set(question.without)


def test_remarks_tell_who_is_missing_from_who_was_filtered_out(surfaces: Surfaces, made: Any) -> None:
    for nobody in (Question(("Zoe",), sure=True), Question(("Zoe",), sure=True, before="2018-01-01")):
        assert surfaces.python(nobody).warnings == ["no sure match of Zoe among 8 faces"]
    assert surfaces.python(Question(("Dora",), before="2018-01-01")).warnings == [
        "Dora is surely in 1 photo, but in none that meets the conditions (taken before 2018-01-01)"
    ]
    filtered = surfaces.library.search(["Cleo"], conditions=Conditions(folder=str(made.photos / "2016")))
    assert filtered.warnings == (
        f"Cleo is surely in 2 photos, but in none that meets the conditions (in {made.photos / '2016'})",
    )
    assert filtered.unsure == ()
    assert surfaces.python(Question(("Cleo",), kind="video")).warnings == [
        "no video is in this library: looking in videos only finds nothing"
    ]


def test_everybody_has_one_number_of_photos(surfaces: Surfaces, window: Page) -> None:
    library = surfaces.library
    expected = {"Anna": 2, "Ben": 3, "Cleo": 2, "Dora": 1, "Zoe": 1}  # a guess
    assert {name: library.people.photos(name).total for name in SAVED} == expected
    at = ("--library", surfaces.path)
    assert {name: answered("people", "show", name, *at)["photos"] for name in SAVED} == expected
    listed = httpx.get(f"{surfaces.url}/api/v1/people").json()["people"]
    assert {person["name"]: person["photos"] for person in listed} == expected
    assert {person.name: person.photos for person in surfaces.client.people().people} == expected
    assert {name: surfaces.client.person_photos(name).total for name in SAVED} == expected
    tiles = window.open("people").locator(".named-person")
    tiles.first.wait_for()
    shown = dict(text.rsplit("\n", 1) for text in tiles.all_inner_texts())
    assert {name.strip(): int(text.split()[0]) for name, text in shown.items()} == expected
