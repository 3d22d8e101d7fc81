from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.errors import InvalidInputError, PhotoError
from setnet.library import Conditions, Library
from setnet.library.person import find_person
from setnet.library.query import QueryPerson, date_from, face_range_from, with_unique_names

Portrait = Callable[[str], str]


def names(hits: object) -> list[str]:
    return [hit.path.stem for hit in hits]  # type: ignore[attr-defined]


def test_photos_with_all_people_come_first_then_all_but_one(shared: Library, portrait: Portrait) -> None:
    hits = shared.search([portrait("P001"), portrait("P003")], k=10)
    assert set(names(hits[:2])) == {"pair", "three"}
    assert names(hits)[2] == "alone"
    assert [len(hit.people) for hit in hits[:3]] == [2, 2, 1]
    assert hits[0].score > 1.9 > 1.1 > hits[2].score
    assert "nobody" not in names(hits)


def test_a_match_points_at_the_right_face(shared: Library, portrait: Portrait) -> None:
    (hit,) = shared.search([portrait("P003"), portrait("P005")], k=1)
    assert hit.path.stem == "three"
    by_person = {match.similarity: match for match in hit.matches}
    assert len(by_person) == 2
    # P005, P001, P003 stand from left to right
    assert [match.face for match in hit.matches] == [2, 0]
    assert hit.matches[0].box == hit.photo.faces[2].box


def test_all_only_without_and_at_least(shared: Library, portrait: Portrait) -> None:
    one, three, five = portrait("P001"), portrait("P003"), portrait("P005")
    assert set(names(shared.search([one, three], at_least=2))) == {"pair", "three"}
    assert names(shared.search([one, three], at_least=2, only=True)) == ["pair"]
    assert names(shared.search([one, three], at_least=1, without=[five]))[0] == "pair"
    assert "three" not in names(shared.search([three], at_least=1, without=[five]))
    with pytest.raises(InvalidInputError, match="at least 3 of 2 people"):
        shared.search([one, three], at_least=3)


def test_conditions_on_time_folder_and_number_of_faces(
    shared: Library, album: Path, portrait: Portrait
) -> None:
    def found(**limits: Any) -> set[str]:
        return set(
            names(shared.search([portrait("P003")], k=10, at_least=0, conditions=Conditions(**limits)))
        )

    assert found(before=datetime(2017, 1, 1)) == {"pair", "alone"}
    assert found(after=datetime(2019, 1, 2, 3, 4, 5)) == {"three", "others"}
    assert found(after=datetime(2019, 1, 2, 3, 4, 6)) == set()
    assert found(folder=str(album / "2016")) == {"pair", "alone"}
    assert found(folder=str(album / "20")) == set()
    (warning,) = shared.search([portrait("P001")], conditions=Conditions(folder=str(album / "20"))).warnings
    assert warning == f"no photo in this library is in {album / '20'}: its folders are {album}"
    assert found(faces=(2, 2)) == {"pair", "others"}
    assert found(faces=(3, None)) == {"three"}


@pytest.mark.parametrize("mode", ["exact", "fast", "set"])
def test_every_mode_ranks_and_shows_who_is_where(shared: Library, portrait: Portrait, mode: str) -> None:
    hits = shared.search([portrait("P001"), portrait("P003")], k=3, mode=mode)
    assert set(names(hits)) == {"pair", "three", "alone"}
    assert all(len(hit.matches) == 2 for hit in hits if hit.path.stem in ("pair", "three"))


@pytest.mark.parametrize("mode", ["quick", "tags"])
def test_an_unknown_mode_lists_the_valid_ones(shared: Library, portrait: Portrait, mode: str) -> None:
    with pytest.raises(InvalidInputError, match=r"'exact', 'fast', 'set'$"):
        shared.search([portrait("P001")], mode=mode)


def test_a_person_may_be_a_descriptor_a_face_number_a_folder_or_a_name(
    shared: Library, library: Library, album: Path, tmp_path: Path, portrait: Portrait
) -> None:
    three = str(album / "2019" / "three.jpg")
    pair = next(p for p in shared.photos.all_photos() if p.path.stem == "pair")
    by_number = shared.person(f"{three}#3")
    by_name = shared.photos.descriptors(pair.id)[1]
    assert by_number.name == "three#3"
    assert float(by_number.descriptors[0] @ by_name) > 0.5  # P003 both times
    folder = tmp_path / "of one person"
    folder.mkdir()
    for number, person in enumerate(["P003", "P003"]):
        (folder / f"{number}.jpg").write_bytes(Path(portrait(person)).read_bytes())
    assert shared.person(str(folder)).descriptors.shape == (2, 128)
    library.people.add_photos("Cleo", [portrait("P003")])
    assert library.person("cleo").name == "Cleo"
    assert set(names(library.search(["cleo"], at_least=1))) == {"pair", "three", "alone"}
    assert set(names(library.search([by_name], at_least=1))) == {"pair", "three", "alone"}
    assert library.people.photo_counts()[library.people.get("CLEO").id] == 3


def test_the_largest_face_is_taken_and_the_user_told(shared: Library, album: Path) -> None:
    answer = shared.search([str(album / "2016" / "pair.jpg")])
    assert any("2 faces: took the largest" in warning for warning in answer.warnings)
    assert not shared.search([str(album / "2016" / "pair.jpg#1")]).warnings


def test_people_who_look_alike_get_a_warning_and_an_answer(shared: Library, portrait: Portrait) -> None:
    answer = shared.search([portrait("P003"), portrait("P003")])
    assert [p.name for p in answer.people] == ["studio_portrait", "studio_portrait (2)"]
    assert any("one and the same" in warning for warning in answer.warnings)
    assert answer.hits


def test_people_of_a_query_have_different_names_whatever_they_are_called() -> None:
    people = [QueryPerson(name, np.eye(4, dtype=np.float32)[:1]) for name in ("a", "a", "a (2)", "a")]
    assert [person.name for person in with_unique_names(people)] == ["a", "a (3)", "a (2)", "a (4)"]


@pytest.mark.parametrize(
    ("person", "error", "message"),
    [
        ("2019/nobody.jpg", PhotoError, "no face found.*nobody.jpg"),
        ("broken.jpg", PhotoError, "broken.jpg.*not a photo"),
        ("2016/pair.jpg#3", InvalidInputError, "has 2 face"),
        ("missing.jpg", InvalidInputError, "neither a saved person nor a file"),
    ],
)
def test_each_wrong_person_has_its_own_message(
    shared: Library, album: Path, person: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        shared.search([str(album / person)])


def test_an_empty_library_answers_with_nothing(tmp_path: Path) -> None:
    with Library.create(tmp_path / "empty") as empty:
        answer = empty.search([np.eye(128, dtype=np.float32)[0]])
        assert (answer.hits, answer.searched) == ((), 0)
        late = empty.search(
            [np.eye(128, dtype=np.float32)[0]], conditions=Conditions(after=datetime(2000, 1, 1))
        )
        assert any("known time" in warning for warning in late.warnings)
        for condition in (Conditions(folder="/a"), Conditions(faces=(2, None))):
            assert empty.search([np.eye(128, dtype=np.float32)[0]], conditions=condition).hits == ()
        with pytest.raises(InvalidInputError, match="nobody to look for"):
            empty.search([])


def test_pages_of_an_answer_continue_one_another(shared: Library, portrait: Portrait) -> None:
    whole = names(shared.search([portrait("P003")], k=4))
    assert (
        names(shared.search([portrait("P003")], k=2))
        + names(shared.search([portrait("P003")], k=2, offset=2))
        == whole
    )


def test_pages_do_not_repeat_a_photo_while_another_is_being_stored(
    library: Library, portrait: Portrait
) -> None:
    best, *rest = library.search([portrait("P003")], k=4)
    with library._database.writing() as db:
        db.execute("UPDATE photos SET state = 'unread' WHERE id = ?", (best.photo.id,))
    pages = [library.search([portrait("P003")], k=1, offset=place) for place in range(3)]
    assert [hit.photo.id for page in pages for hit in page] == [hit.photo.id for hit in rest]


def test_an_answer_says_how_long_and_how_many(shared: Library, portrait: Portrait) -> None:
    answer = shared.search([portrait("P003")])
    assert answer.searched == 5
    assert set(answer.seconds) == {"people", "search", "records"}


@pytest.mark.parametrize("text", ["", "19", "2019-13", "2019-02-30", "yesterday", "2019-1-1-1"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a date"):
        date_from(text)


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1)))
def test_a_date_round_trips(when: datetime) -> None:
    assert date_from(when.isoformat()) == when
    assert date_from(f"{when.year:04}-{when.month}-{when.day}") == datetime(when.year, when.month, when.day)


@given(st.integers(0, 999), st.integers(0, 999))
def test_a_number_of_faces_round_trips(low: int, high: int) -> None:
    assert face_range_from(f"{low}") == (low, low)
    assert face_range_from(f"{low}+") == (low, None)
    if low <= high:
        assert face_range_from(f"{low}-{high}") == (low, high)
    else:
        with pytest.raises(InvalidInputError):
            face_range_from(f"{low}-{high}")


def test_each_name_is_looked_up_once(
    library: Library, portrait: Portrait, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.people.add_photos("Anna", [portrait("P001")])
    library.people.add_photos("Ben", [portrait("P003")])
    looked: list[str] = []

    def counted(db: Any, text: str) -> int | None:
        looked.append(text)
        return find_person(db, text)

    for module in ("query", "people", "person"):
        monkeypatch.setattr(f"setnet.library.{module}.find_person", counted)
    assert names(library.search(["Anna", "Ben"], at_least=2))[0] == "pair"
    assert looked == ["Anna", "Ben"]
