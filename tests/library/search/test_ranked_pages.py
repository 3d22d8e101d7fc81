"""A ranking is searched for once: its pages agree with one large answer, and with each other."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.library import Conditions, GroupTotal, Library, PhotoQuery, Ranking
from tests.support.invented_photos import face_of, remove, store

pytestmark = pytest.mark.xdist_group("ranked-pages")
ANN, BEN, CLEO, OTHER = 1, 2, 3, 100
PEOPLE = [face_of(ANN, 1), face_of(BEN, 1), face_of(CLEO, 1)]


def album(number: int, seed: int = 0) -> dict[str, list[int]]:
    """Return photos of none to three of the people, and of others."""
    chance = np.random.default_rng(seed)
    return {
        f"{seed}-{i}.jpg": [p for p in (ANN, BEN, CLEO) if chance.random() < 0.4]
        + [OTHER + int(chance.integers(50))] * int(chance.integers(2))
        for i in range(number)
    }


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of 150 photos; not to be changed."""
    place = tmp_path_factory.mktemp("stored") / "library"
    with Library.create(place) as library:
        store(library, album(150))
    return place


@pytest.fixture
def invented(stored: Path, tmp_path: Path) -> Iterator[Library]:
    with Library.open(shutil.copytree(stored, tmp_path / "library")) as library:
        yield library


def read(ranking: Ranking, k: int, start: int = 0) -> list[str]:
    """Return the ids of all pages from one on."""
    ids: list[str] = []
    offset = start
    while True:
        ids += [hit.photo.id for hit in ranking.page(offset, k).hits]
        offset += k
        if not ranking.has_more(offset):
            return ids


@pytest.mark.parametrize("mode", ["exact", "fast", "set"])
@pytest.mark.parametrize("k", [1, 7, 64, 500])
def test_pages_in_a_row_are_the_whole_answer(invented: Library, mode: str, k: int) -> None:
    at_least = 0 if mode == "set" else 1
    whole = invented.search(PhotoQuery(PEOPLE, k=500, mode=mode, at_least=at_least))
    ranking = invented.rank(PhotoQuery(PEOPLE, k=k, mode=mode, at_least=at_least))
    pages = [ranking.page(at, k) for at in range(0, len(whole.hits), k)]
    assert [hit for page in pages for hit in page.hits] == list(whole.hits)
    assert len(whole.hits) > 90
    assert not ranking.has_more(len(whole.hits))


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_newest_first_orders_photos_with_equally_many_of_the_people_by_date(
    invented: Library, mode: str
) -> None:
    by_score = invented.search(PhotoQuery(PEOPLE, k=500, mode=mode)).hits
    ranking = invented.rank(PhotoQuery(PEOPLE, k=7, mode=mode, newest=True))
    found = read(ranking, 7)
    matched = {hit.photo.id: len(hit.matches) for hit in by_score}
    place = {photo: number for number, photo in enumerate(invented.photos.newest_first(matched))}
    assert found == sorted(matched, key=lambda photo: (-matched[photo], place[photo]))
    assert found != [hit.photo.id for hit in by_score]


def test_few_searches_serve_all_pages_and_later_ones_none(invented: Library, searches: list[int]) -> None:
    ranking = invented.rank(PhotoQuery(PEOPLE, k=1))
    ranking.page(0, 1)
    assert searches == [2]
    ids = read(ranking, 1)
    assert len(ids) == len(set(ids)) > 90
    assert len(searches) <= 8  # each for twice as many as the one before
    done = len(searches)
    ranking.page(140, 1)
    ranking.page(3, 50)
    assert len(searches) == done


def test_no_more_than_the_most_are_ranked(invented: Library, searches: list[int]) -> None:
    ranking = invented.rank(PhotoQuery(PEOPLE, k=10), max_photos=25)
    assert len(read(ranking, 10)) == 25
    assert not ranking.has_more(25)
    assert max(searches) == 25


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [3, 40])
def test_nothing_comes_twice_or_is_missing_when_the_library_changes(
    invented: Library, seed: int, k: int
) -> None:
    chance = np.random.default_rng(seed)
    ranking = invented.rank(PhotoQuery(PEOPLE, k=k, at_least=1))
    before = {hit.photo.id for hit in invented.search(PhotoQuery(PEOPLE, k=500, at_least=1)).hits}
    shown = [hit.photo.id for hit in ranking.page(0, k).hits]
    gone = [i for i in sorted(before) if chance.random() < 0.2]
    remove(invented, gone)
    store(invented, album(40, seed=seed + 1))  # some of them are better than what was shown
    store(invented, {"0-3.jpg": [ANN, BEN, CLEO], "0-4.jpg": [OTHER]})  # changed: moved up, or away
    rest = read(ranking, k, start=k)
    after = {hit.photo.id for hit in invented.search(PhotoQuery(PEOPLE, k=500, at_least=1)).hits}
    assert max(Counter(shown + rest).values()) == 1
    assert (before & after) <= {*shown, *rest}
    assert not {*gone} & {*rest}
    assert {*rest} <= before | after


def test_a_page_shows_the_faces_that_its_photos_have_now(invented: Library) -> None:
    store(invented, {"trio.jpg": [ANN, BEN, CLEO]})
    ranking = invented.rank(PhotoQuery(PEOPLE, k=5))
    place, score = next(
        (place, hit.score) for place, hit in enumerate(ranking.page(0, 5).hits) if hit.path.name == "trio.jpg"
    )
    store(invented, {"trio.jpg": [OTHER, CLEO]})
    (hit,) = ranking.page(place, 1).hits
    assert hit.score == score  # of the moment it was ranked
    assert [(match.person, match.face) for match in hit.matches] == [("person 3", 1)]
    assert hit.matches[0].box == hit.photo.faces[1].box


def test_an_unfinished_photo_is_neither_found_nor_counted(invented: Library) -> None:
    best = invented.search(PEOPLE, k=1)[0].photo.id
    before = invented.search(PhotoQuery(PEOPLE, at_least=1, totals=True)).totals
    with invented._database.writing() as db:
        db.execute("UPDATE photos SET state = 'unread' WHERE id = ?", (best,))
    answer = invented.search(PhotoQuery(PEOPLE, k=500, at_least=1, totals=True))
    assert best not in [hit.photo.id for hit in answer.hits]
    assert before is not None
    first = before[0]
    assert answer.totals == (GroupTotal(3, first.photos - 1, first.sure - 1), *before[1:])


def counted(library: Library, **options: Any) -> Counter[int]:
    """Return how many photos have how many of the people, by looking at every one of them."""
    hits = library.search(PEOPLE, k=1000, **{"at_least": 0, **options})
    return Counter(len(hit.people) for hit in hits)


def totals(found: Counter[int], least: int) -> tuple[GroupTotal, ...]:
    """Return the totals of an answer in which every match is sure."""
    return tuple(GroupTotal(m, found[m], found[m]) for m in range(3, least - 1, -1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"at_least": 1},
        {"at_least": 2},
        {"at_least": 3},
        {"at_least": 1, "only": True},
        {"at_least": 1, "without": [face_of(BEN, 2)]},
        {"at_least": 1, "conditions": Conditions(faces=(2, 3))},
        {"conditions": Conditions(folder="/nowhere")},
        {"at_least": 1, "mode": "fast"},
    ],
)
def test_totals_are_those_of_looking_at_every_photo(invented: Library, options: dict[str, Any]) -> None:
    answer = invented.search(PhotoQuery(PEOPLE, k=2, totals=True, **options))
    found = counted(invented, **options)
    least = max(1, options.get("at_least", 0))
    assert answer.totals == totals(found, least)
    assert len(answer.hits) <= 2


def test_totals_of_conditions_that_nothing_can_meet_are_zero(invented: Library) -> None:
    answer = invented.search(PhotoQuery(PEOPLE, totals=True, conditions=Conditions.parse(after="2019")))
    assert answer.totals == totals(Counter(), 1)
    assert "known time" in answer.warnings[0]


def test_an_empty_library_has_empty_pages_and_totals(tmp_path: Path) -> None:
    with Library.create(tmp_path / "library") as library:
        ranking = library.rank(PhotoQuery(PEOPLE, at_least=1, totals=True))
        assert ranking.page(0, 20).hits == ranking.page(20, 20).hits == ()
        assert not ranking.has_more(0)
        assert sum(total.photos for total in ranking.totals or ()) == 0


def test_totals_are_given_where_they_are_asked_for_and_faces_compared(
    invented: Library, searches: list[int]
) -> None:
    assert invented.search(PhotoQuery(PEOPLE)).totals is None
    assert invented.search(PhotoQuery(PEOPLE, mode="set", totals=True)).totals is None
    searches.clear()
    invented.search(PhotoQuery(PEOPLE, at_least=1, totals=True))
    assert len(searches) == 1  # hits and totals come from one search
    ranking = invented.rank(PhotoQuery(PEOPLE, k=1, at_least=1, totals=True))
    searches.clear()
    assert sum(total.photos for total in ranking.totals or ()) == len(read(ranking, 10))
    assert searches == []  # which found all pages
