"""Copies and bursts as one hit, and nothing lost on the way."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from setnet.faces import Box
from setnet.library import Library, LibraryPhoto, PersonMatch, PhotoHit
from setnet.library.answer import collapse
from tests.support.invented_photos import store

NOON = datetime(2019, 7, 4, 12)


def hit(
    number: int,
    seconds: float | None = None,
    *,
    content: int | None = None,
    folder: str = "/p",
    people: tuple[str, ...] = ("Anna",),
    taken_from: str | None = None,
    start: float | None = None,
) -> PhotoHit:
    matches = tuple(PersonMatch(name, 0.8, 0, Box(0, 0, 9, 9), 0.9, True) for name in people)
    taken = None if seconds is None else NOON + timedelta(seconds=seconds)
    digest = bytes([number if content is None else content]) * 16
    photo = LibraryPhoto(str(number), f"{folder}/{number}.jpg".encode(), 1, digest, taken, 9, 9, (), start)
    return PhotoHit(photo._replace(stored_taken_from=taken_from), 1 - number / 100, matches)


def ids(photos: tuple[LibraryPhoto, ...]) -> list[str]:
    return [photo.id for photo in photos]


def test_copies_follow_the_best_of_them() -> None:
    best, other = collapse([hit(1), hit(2, content=1, folder="/q"), hit(3)])
    assert (best.photo.id, ids(best.copies), ids(best.others)) == ("1", ["2"], [])
    assert (other.photo.id, other.copies) == ("3", ())
    assert best.to_dict()["copies"] == [{"photo": "/q/2.jpg", "id": "2"}]


def test_photos_within_seconds_of_each_other_are_a_burst() -> None:
    found = collapse([hit(1, 4), hit(2, 0), hit(3, 2), hit(4, 60), hit(5, 5, content=1)])
    assert [(each.photo.id, ids(each.others), ids(each.copies)) for each in found] == [
        ("1", ["2", "3"], ["5"]),
        ("4", [], []),
    ]


def test_a_copy_elsewhere_that_is_found_between_two_photos_of_a_burst_divides_it_not() -> None:
    (one,) = collapse([hit(1, 1), hit(2, 0, folder="/q"), hit(3, 0, content=2)])
    assert (ids(one.others), ids(one.copies)) == (["2"], ["3"])


def test_a_burst_has_one_folder_the_same_people_and_known_times() -> None:
    hits = [
        hit(1, 0),
        hit(2, 1, folder="/q"),
        hit(3, 1, people=("Anna", "Ben")),
        hit(4),
        hit(5),
        hit(6, 0, taken_from="file"),
        hit(7, 0, taken_from="file"),
        hit(8, -43200, taken_from="name"),  # a day without a time, as in names of WhatsApp
        hit(9, -43200, taken_from="name"),
        hit(10, 0, start=0.0),
        hit(11, 0, start=1.0),
    ]
    assert collapse(hits) == hits


@given(
    st.lists(
        st.builds(
            hit,
            st.integers(0, 250),
            st.none() | st.integers(0, 30),
            content=st.none() | st.integers(0, 4),
            people=st.sampled_from([("Anna",), ("Anna", "Ben")]),
        ),
        unique_by=lambda each: each.photo.id,
        max_size=25,
    )
)
def test_every_photo_is_there_once_and_the_order_stays(hits: list[PhotoHit]) -> None:
    found = collapse(hits)
    everything = [photo.id for each in found for photo in (each.photo, *each.copies, *each.others)]
    assert sorted(everything) == sorted(each.photo.id for each in hits)
    place = {each.photo.id: number for number, each in enumerate(hits)}
    kept = [place[each.photo.id] for each in found]
    assert kept == sorted(kept)
    for each in found:
        assert all(place[each.photo.id] < place[photo.id] for photo in (*each.copies, *each.others))


def test_totals_of_a_collapsed_answer_count_photos(tmp_path: Path) -> None:
    with Library.create(tmp_path / "library") as library:
        store(library, {f"{number}.jpg": [1, 2] for number in range(3)}, taken=1.5e9)
        answer = library.search([library.photos.descriptors("1")[0]], totals=True, at_least=1)
        assert len(answer.hits) == 3
        shown = answer.collapse()
        assert len(shown.hits) == 1
        assert len(shown.hits[0].copies) + len(shown.hits[0].others) == 2
        assert shown.totals == answer.totals
        assert answer.totals is not None
        assert answer.totals[0].photos == 3
