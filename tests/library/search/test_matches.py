"""Sure matches and guesses, in answers, totals, sheets and names of faces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from setnet.errors import InvalidInputError
from setnet.library import Example, GroupTotal, Library, PhotoQuery, QueryPerson, StoredFace, contact_sheet
from setnet.library.person_matcher import NamedPeople
from setnet.library.photo_reader import PhotoResult
from setnet.library.photo_writer import PhotoWriter
from tests.support.invented_photos import DIM, face_of, store

ANNA, BEN = 1, 2


def near(person: int, similarity: float, seed: int = 0) -> NDArray[np.float32]:
    """Return a face of this similarity to a person's first one."""
    return beside(face_of(person, 0), similarity, 100 * person + seed)


def beside(face: NDArray[np.float32], similarity: float, seed: int) -> NDArray[np.float32]:
    """Return a face of this similarity to another one."""
    own = face.astype(np.float64)
    other = np.random.default_rng((7, seed)).normal(size=DIM)
    other -= (other @ own) * own
    return np.asarray(
        similarity * own + np.sqrt(1 - similarity**2) * other / np.linalg.norm(other), np.float32
    )


def add(library: Library, photos: dict[str, list[NDArray[np.float32]]]) -> None:
    """Store photos with these faces."""
    results = [
        PhotoResult(
            path=f"/made/{name}".encode(),
            hash=name.encode(),
            width=800,
            height=600,
            faces=tuple(
                StoredFace(i, 100.0 * i, 50.0, 100.0 * i + 80, 150.0, 0.99, bytes(40), '{"size": 90.0}')
                for i in range(len(faces))
            ),
            descriptors=np.stack(faces),
        )
        for name, faces in photos.items()
    ]
    with library._writing() as index:
        PhotoWriter(library._database, index).store(results)


def person(number: int, **more: Any) -> QueryPerson:
    return QueryPerson({ANNA: "Anna", BEN: "Ben"}[number], face_of(number, 0)[None], **more)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as made:
        store(made, {f"{i}.jpg": [1000 + i, 2000 + i] for i in range(100)})  # strangers
        add(
            made,
            {
                "sure.jpg": [near(ANNA, 0.7), near(BEN, 0.68)],
                "half.jpg": [near(ANNA, 0.6, 1), near(BEN, 0.45, 1)],
                "guess.jpg": [near(ANNA, 0.44, 2)],
                "two guesses.jpg": [near(ANNA, 0.46, 3), near(BEN, 0.46, 3)],
                "stranger.jpg": [near(ANNA, 0.3, 4)],
            },
        )
        yield made


def found(library: Library, people: list[QueryPerson], **options: Any) -> dict[str, list[str]]:
    """Return who is in which photo, in the order of the answer."""
    answer = library.search(PhotoQuery(people, **{"k": 50, "at_least": 1, **options}))
    return {hit.path.name: [match.label for match in hit.matches] for hit in answer.hits}


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_what_is_sure_comes_first_and_guesses_say_so(library: Library, mode: str) -> None:
    assert found(library, [person(ANNA), person(BEN)], mode=mode) == {
        "sure.jpg": ["Anna", "Ben"],
        "half.jpg": ["Anna", "Ben?"],
        "two guesses.jpg": ["Anna?", "Ben?"],
        "guess.jpg": ["Anna?"],
    }


def test_every_match_has_a_probability_and_says_whether_it_is_sure(library: Library) -> None:
    answer = library.search(PhotoQuery([person(ANNA)], at_least=1, totals=True)).to_dict()
    by_photo = {hit["name"]: hit["matches"][0] for hit in answer["hits"]}
    assert [match["sure"] for match in by_photo.values()] == [True, True, False, False]
    shares = [match["probability"] for match in by_photo.values()]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.999
    assert 0.05 < shares[-1] < 0.995
    assert answer["faces_searched"] == 208
    (threshold,) = answer["thresholds"]
    assert threshold["person"] == "Anna"
    assert 0.3 < threshold["maybe"] < 0.38 < 0.42 < threshold["sure"] < 0.5
    assert answer["totals"] == [{"matched": 1, "photos": 4, "sure": 2}]
    assert (answer["unsure"], answer["warnings"]) == ([], [])


def test_totals_tell_photos_with_guesses_from_those_without(library: Library) -> None:
    both = [person(ANNA), person(BEN)]
    answer = library.search(PhotoQuery(both, at_least=1, totals=True))
    assert answer.totals == (GroupTotal(2, 3, 1), GroupTotal(1, 1, 0))
    sure = library.search(PhotoQuery(both, at_least=1, totals=True, sure=True))
    assert sure.totals == (GroupTotal(2, 1, 1), GroupTotal(1, 1, 1))


def test_only_sure_matches_count_where_asked(library: Library) -> None:
    both = [person(ANNA), person(BEN)]
    assert found(library, both, sure=True) == {"sure.jpg": ["Anna", "Ben"], "half.jpg": ["Anna"]}
    assert list(found(library, both, sure=True, at_least=2)) == ["sure.jpg"]
    assert list(found(library, both, at_least=2)) == ["sure.jpg", "half.jpg", "two guesses.jpg"]
    assert list(found(library, both, only=True, sure=True)) == ["sure.jpg"]
    assert "half.jpg" in found(library, both, only=True)


def test_a_given_similarity_takes_the_place_of_the_threshold(library: Library) -> None:
    assert "stranger.jpg" in found(library, [person(ANNA)], min_similarity=0.29)
    assert list(found(library, [person(ANNA)], min_similarity=0.55)) == ["sure.jpg", "half.jpg"]
    assert list(found(library, [person(ANNA)], min_similarity=0.65, sure=True)) == ["sure.jpg"]
    assert list(found(library, [person(ANNA)], min_similarity=0.3, sure=True)) == ["sure.jpg", "half.jpg"]
    with pytest.raises(InvalidInputError, match="from -1 to 1"):
        PhotoQuery([person(ANNA)], min_similarity=2.0)


def test_a_person_who_is_maybe_there_is_not_left_out_of_without(library: Library) -> None:
    assert list(found(library, [person(ANNA)], without=[person(BEN)])) == ["guess.jpg"]


def test_an_absent_person_gets_a_warning_and_no_strangers(library: Library) -> None:
    absent = QueryPerson("Zoe", face_of(77, 0)[None])
    answer = library.search(PhotoQuery([absent], at_least=1, totals=True))
    assert answer.hits == ()
    assert answer.warnings == ("no sure match of Zoe among 208 faces",)
    guessed = QueryPerson("Guess", beside(near(ANNA, 0.44, 2), 0.45, 5)[None])
    answer = library.search(PhotoQuery([guessed], at_least=1))
    assert [hit.path.name for hit in answer.hits] == ["guess.jpg"]
    assert answer.unsure == ("Guess",)
    assert answer.warnings == ("no sure match of Guess among 208 faces; the following are guesses",)
    both = library.search(PhotoQuery([person(ANNA), absent], at_least=1, k=1))
    assert both.unsure == ("Zoe",)


def test_somebody_who_is_sure_only_below_the_first_page_is_not_called_absent(library: Library) -> None:
    add(library, {f"both {i}.jpg": [near(ANNA, 0.8, i), near(BEN, 0.5, i)] for i in range(3)})
    answer = library.search(PhotoQuery([person(ANNA), person(BEN)], k=1))
    assert answer.unsure == ()


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_a_rejected_face_never_matches_again_and_several_make_less_similar_ones_guesses(
    library: Library, mode: str
) -> None:
    photos = {hit.path.name: hit.photo.id for hit in library.search([person(ANNA)], k=50, at_least=1)}
    refused = frozenset({(photos["half.jpg"], 0)})
    anna = person(ANNA, rejected=refused)
    answer = found(library, [anna, person(BEN)], mode=mode)
    assert answer["half.jpg"] == ["Ben?"]
    assert found(library, [anna], mode=mode) == {
        "sure.jpg": ["Anna"],
        "two guesses.jpg": ["Anna?"],
        "guess.jpg": ["Anna?"],
    }
    mean, spread = library._matchers.model.genuine_to(1)
    assert library._matchers.matcher(anna).sure == pytest.approx(mean - spread, abs=0.001)
    add(library, {"late.jpg": [near(ANNA, 0.59, 9)], **{f"{n}.jpg": [near(ANNA, 0.6, n)] for n in range(2)}})
    assert found(library, [anna], mode=mode)["late.jpg"] == ["Anna"], "one may be a slip"
    more = {photo.path.name: photo.id for photo in library.photos.all_photos()}
    anna = person(ANNA, rejected=refused | {(more["0.jpg"], 0), (more["1.jpg"], 0)})
    assert library._matchers.matcher(anna).sure == pytest.approx(0.62, abs=0.001)
    assert found(library, [anna], mode=mode)["late.jpg"] == ["Anna?"]
    assert found(library, [person(ANNA)], mode=mode)["late.jpg"] == ["Anna"]


def test_a_confirmed_face_is_sure_however_unlike_it_is(library: Library) -> None:
    stranger = next(p for p in library.photos.all_photos() if p.path.name == "stranger.jpg")
    anna = person(ANNA, confirmed=frozenset({(stranger.id, 0)}))
    answer = library.search(PhotoQuery([anna], at_least=1, totals=True, k=50))
    match = next(hit.matches[0] for hit in answer.hits if hit.photo.id == stranger.id)
    assert (match.probability, match.sure) == (1.0, True)
    assert match.similarity == pytest.approx(0.3, abs=1e-5)
    assert answer.totals == (GroupTotal(1, 5, 3),)
    assert "stranger.jpg" in found(library, [anna], sure=True)
    refused = replace(anna, rejected=anna.confirmed)
    assert "stranger.jpg" not in found(library, [refused]), "what was said last, to be safe, is no"


def test_labels_of_a_photo_that_is_gone_do_not_matter(library: Library) -> None:
    anna = person(ANNA, rejected=frozenset({("999999", 0)}), confirmed=frozenset({("1", 7)}))
    assert found(library, [anna]) == found(library, [person(ANNA)])


@pytest.mark.parametrize("label", ["rejected", "confirmed"])
def test_what_was_said_of_a_person_counts_for_without_too(library: Library, label: str) -> None:
    photos = {hit.path.name: hit.photo.id for hit in library.search([person(ANNA)], k=50, at_least=1)}
    known = {"rejected": ("half.jpg", 1), "confirmed": ("guess.jpg", 0)}[label]
    ben = person(BEN, **{label: frozenset({(photos[known[0]], known[1])})})
    names = list(found(library, [person(ANNA)], without=[ben]))
    assert names == (["half.jpg", "guess.jpg"] if label == "rejected" else [])


@pytest.mark.parametrize(
    ("descriptors", "message"),
    [
        (np.full((1, DIM), np.nan), "Anna: a descriptor holds NaN"),
        (np.ones((2, 7)), "Anna: descriptors of 7 numbers; this library's have 128"),
        (np.zeros((1, DIM)), "the examples of Anna cancel out"),
    ],
)
def test_descriptors_that_cannot_be_compared_are_refused(
    library: Library, descriptors: NDArray[np.float64], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        library.search([QueryPerson("Anna", descriptors.astype(np.float32))])


def test_faces_are_named_by_the_same_thresholds(library: Library) -> None:
    library.people.add("Anna", [Example(face_of(ANNA, 0))])
    people = NamedPeople.of(library)
    named = [people.identify(near(ANNA, s, 5)) for s in (0.7, 0.45, 0.3)]
    assert [(one.label, one.sure) for one in named] == [("Anna", True), ("Anna?", False), ("", False)]
    assert named[0].probability > 0.9999 > named[1].probability > 0.01
    assert named[1].to_dict()["sure"] is False
    assert named[2].to_dict() == {"person": None, "similarity": None, "probability": None, "sure": None}
    anna = replace(people.people[0], rejected=frozenset({("5", 1)}), confirmed=frozenset({("6", 0)}))
    judged = replace(people, people=(anna,))
    assert judged.identify(near(ANNA, 0.7), face=("5", 1)).name == ""
    confirmed = judged.identify(near(ANNA, 0.1), face=("6", 0))
    assert (confirmed.name, confirmed.probability, confirmed.sure) == ("Anna", 1.0, True)


def test_a_face_between_two_people_is_named_by_the_margin(library: Library) -> None:
    library.people.add("One", [Example(face_of(ANNA, 0))])
    library.people.add("Many", [Example(near(ANNA, 0.9, i)) for i in range(8)])
    people = NamedPeople.of(library)
    thresholds = dict(zip(people.names, people.thresholds.tolist(), strict=True))
    assert thresholds["Many"] > thresholds["One"]


def test_photos_of_a_person_are_those_that_a_search_finds(library: Library) -> None:
    library.people.add("Anna", [Example(face_of(ANNA, 0))])
    photos = library.people.photos("Anna")
    assert (photos.total, photos.sure) == (len(library.search(["Anna"], k=50)), 2) == (4, 2)


def test_export_labels_what_is_sure(library: Library, tmp_path: Path) -> None:
    library.people.add("Anna", [Example(face_of(ANNA, 0))])
    assert library.photos.export(tmp_path / "out.npz").labelled == 2


def test_a_sheet_shows_guesses_in_another_colour_and_with_a_question_mark(
    library: Library, tmp_path: Path
) -> None:
    answer = library.search(PhotoQuery([person(ANNA), person(BEN)], at_least=1))
    contact_sheet(answer, tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    assert "1 and maybe 1 of 2" in page
    assert "maybe 2 of 2" in page
    photo = tmp_path / "half.jpg"
    Image.new("RGB", (800, 600), (40, 40, 60)).save(photo)
    hit = next(hit for hit in answer.hits if hit.path.name == "half.jpg")
    there = hit._replace(photo=hit.photo._replace(stored_path=str(photo).encode()))
    contact_sheet(replace(answer, hits=(there,)), tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    assert 'class="match maybe"' in page
    assert "Ben? 0.45" in page
