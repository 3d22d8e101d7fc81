"""People are saved, found and edited; saving under a name that is taken asks instead of mixing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError, TakenError
from setnet.library import Example, Library
from setnet.library.people import People
from setnet.library.purge import erase_photos
from tests.support.invented_photos import face_of


def example(*values: float) -> Example:
    return Example(np.array(values, np.float32), source="/photos/a.jpg", picture=b"JPEG")


def test_examples_gather_under_one_name_whatever_its_case(people: People) -> None:
    people.add("Zoë", [example(1, 0, 0, 0)])
    people.add("ZOE\u0308", [example(0, 1, 0, 0)])
    assert [(p.name, p.examples) for p in people] == [("Zoë", 2)]
    assert "zoë" in people
    np.testing.assert_array_equal(people.descriptors("zoë"), np.eye(4, dtype=np.float32)[:2])
    assert people.examples("zoë")[0].source == "/photos/a.jpg"


def test_an_unknown_name_is_answered_with_the_known_ones(people: People) -> None:
    with pytest.raises(InvalidInputError, match="nobody is saved yet"):
        people.get("anna")
    people.add("Ben", [example(1, 0, 0, 0)])
    with pytest.raises(InvalidInputError, match="no person 'anna': known are Ben"):
        people.descriptors("anna")


def test_rename_refuses_a_taken_name_and_merge_takes_the_examples(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0)])
    people.add("Ben", [example(0, 1, 0, 0)])
    with pytest.raises(InvalidInputError, match="merge"):
        people.rename("anna", "BEN")
    assert people.rename("anna", "ANNA").name == "ANNA"
    assert people.merge("ben", ["anna"]).examples == 2
    assert [p.name for p in people] == ["Ben"]
    with pytest.raises(InvalidInputError, match="itself"):
        people.merge("ben", ["Ben"])


def test_a_person_named_twice_is_merged_once(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0)])
    people.add("Ben", [example(0, 1, 0, 0)])
    assert people.merge("Anna", ["Ben", "BEN"]).examples == 2


def test_a_name_that_is_no_text_is_nobodys(people: People) -> None:
    assert "caf\udce9.jpg" not in people  # how Python spells a file name that is not UTF-8


@pytest.mark.parametrize("name", ["علی\u200cرضا", "क्\u200dष", "👩\u200d👧"])  # noqa: RUF001
def test_names_may_be_spelt_with_joiners(people: People, name: str) -> None:
    assert people.add(f" {name}\u200d ", [example(1, 0, 0, 0)]).name == name
    assert name.replace("\u200c", "").replace("\u200d", "") in people  # nobody can see the difference


def test_a_person_without_examples_says_what_to_do(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0)])
    with people._database.writing() as db:
        assert erase_photos(db, [b"/photos"], []) == 1
    assert [(p.name, p.examples, p.has_picture) for p in people] == [("Anna", 0, False)]
    with pytest.raises(InvalidInputError, match="no example face left"):
        people.descriptors("anna")


def test_names_must_be_printable(people: People) -> None:
    with pytest.raises(InvalidInputError, match="printable"):
        people.add("a\u202eb", [example(1, 0, 0, 0)])


def test_ids_find_people_and_names_come_first(people: People) -> None:
    anna = people.add("Anna", [example(1, 0, 0, 0)])
    assert people.get(anna.id).name == people.get(anna.id.upper()).name == "Anna"
    assert people.rename(anna.id, "Anne").id == anna.id
    rival = people.add(anna.id[::-1], [example(0, 1, 0, 0)])
    people.rename(rival, anna.id)  # a name that is another's id
    assert people.get(anna.id).id == rival.id
    assert people.examples(anna.id)[0].descriptor[1] == 1
    assert people.get(anna).name == "Anne"  # the person themself is never mistaken
    assert people.examples(anna)[0].descriptor[0] == 1
    people.remove(anna, for_good=True)
    assert [p.id for p in people] == [rival.id]


def test_ids_are_never_given_again(people: People) -> None:
    first = people.add("Anna", [example(1, 0, 0, 0)])
    people.remove("Anna", for_good=True)
    again = people.add("Anna", [example(1, 0, 0, 0)])
    assert again.id != first.id
    assert people.examples("Anna")[0].number == 2


def test_aliases_find_a_person_and_are_unique_over_all_names(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0)])
    people.add("Ben", [example(0, 1, 0, 0)])
    assert people.edit("Anna", aliases=["Zoë", " Ann "]).aliases == ("Ann", "Zoë")
    assert people.get("ZOE\u0308").name == people.get("ann").name == "Anna"
    for taken in ("BEN", "zoë"):
        with pytest.raises(InvalidInputError, match="is taken, by"):
            people.edit("Ben" if taken == "zoë" else "Anna", aliases=["new", taken])
    with pytest.raises(InvalidInputError, match="taken, by 'Anna'"):
        people.rename("Ben", "Ann")
    assert people.get("Anna").aliases == ("Ann", "Zoë")
    assert "new" not in people  # nothing of what was refused is stored
    assert people.rename("Anna", "zoë").aliases == ("Ann",)  # her own alias may become her name
    assert people.edit("zoë", aliases=["ZOË", "ANN"]).aliases == ("ANN",)
    assert people.aliases("zoë", add=["A"], drop=["ann"]) == ["A"]
    with pytest.raises(InvalidInputError, match="not also called 'X', but ANN"):
        people.aliases("zoë", drop=["X"])
    assert people.edit("zoë", aliases=[]).aliases == ()
    assert "ann" not in people


def test_a_cover_stands_for_a_person_until_it_leaves(people: People) -> None:
    pictures = [Example(np.eye(4, dtype=np.float32)[n], picture=b"JPEG %d" % n) for n in range(3)]
    people.add("Anna", [*pictures, example(1, 1, 0, 0)])
    people.add("Ben", [Example(np.ones(4, np.float32))])
    assert people.picture("Anna") == b"JPEG 0"
    assert people.edit("Anna", cover=2).cover == 2
    assert people.picture("Anna") == b"JPEG 1"
    people.move("Anna", [2], "Ben")
    assert (people.get("Anna").cover, people.picture("Anna")) == (None, b"JPEG 0")
    people.undo()
    assert people.picture("Anna") == b"JPEG 1"
    people.remove_examples("Anna", [2])
    assert people.get("Anna").cover is None
    people.undo()
    assert people.edit("Anna", cover=0).cover is None
    with pytest.raises(InvalidInputError, match="has no example 5"):
        people.edit("Anna", cover=5)
    with pytest.raises(InvalidInputError, match="has no picture"):
        people.edit("Ben", cover=5)


def test_examples_are_removed_moved_and_split_off_by_number(people: People) -> None:
    people.add("Anna", [example(*row) for row in np.eye(4)])
    people.add("Ben", [example(1, 1, 0, 0)])
    assert [e.number for e in people.examples("Anna")] == [1, 2, 3, 4]
    assert people.remove_examples("Anna", [1]).examples == 3
    assert people.move("Anna", [2, 2], "Ben").examples == 2
    assert people.split("Anna", [3], "Cleo").examples == 1
    numbers = {p.name: [e.number for e in people.examples(p)] for p in people}
    assert numbers == {"Anna": [4], "Ben": [2, 5], "Cleo": [3]}
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: people.remove_examples("Anna", [3]), "'Anna' has no example 3: there are 4"),
        (lambda: people.move("Anna", [4], "anna"), "one person"),
        (lambda: people.split("Anna", [4], "Dan"), "all the examples"),
        (lambda: people.split("Ben", [2], "cleo"), "taken, by 'Cleo'"),
        (lambda: people.move("Anna", [], "Ben"), "say which examples"),
        (lambda: people.move("Anna", [4], "Eve"), "no person 'Eve'"),
    ]
    for change, why in refused:
        with pytest.raises(InvalidInputError, match=why):
            change()
    assert {p.name: [e.number for e in people.examples(p)] for p in people} == numbers


def test_a_face_that_both_have_counts_once_when_people_are_merged(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0), example(0, 1, 0, 0)])
    people.add("Annie", [example(2, 0, 0, 0), example(0, 0, 1, 0)])
    people.edit("Anna", note="one", aliases=["A"])
    people.edit("Annie", note="two", aliases=["B"])
    merged = people.merge("Anna", ["Annie"])
    assert (merged.examples, merged.note, merged.aliases) == (3, "one\ntwo", ("A", "B"))
    people.undo()
    assert [(p.name, p.examples, p.note, p.aliases) for p in people] == [
        ("Anna", 2, "one", ("A",)),
        ("Annie", 2, "two", ("B",)),
    ]


def test_a_note_has_a_length(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0)])
    with pytest.raises(InvalidInputError, match="10,000"):
        people.edit("Anna", note="x" * 10_001)


def test_a_change_says_its_number_and_nothing_done_has_none(people: People) -> None:
    assert people.add("Anna", [example(1, 0, 0, 0)]).change == 1
    assert people.rename("Anna", "Anna").change is None
    assert people.rename("Anna", "ANNA").change == 2
    assert people.get("anna").change is None


@pytest.mark.parametrize("values", [(1.0, 0.0), (np.nan, 0, 0, 0)])
def test_descriptors_must_fit_the_library(people: People, values: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="4 finite numbers"):
        people.add("Anna", [example(*values)])
    assert len(people) == 0


def test_a_removed_person_leaves_no_trace_in_any_file(tmp_path: Path, people: People) -> None:
    secret = np.random.default_rng(1).normal(size=4).astype(np.float32)
    people.add("Anna", [Example(secret, picture=b"a picture of Anna" * 400)])
    people.add("Ben", [example(0, 1, 0, 0)])
    assert _anywhere(tmp_path, secret.tobytes())
    people.remove("anna", for_good=True)
    for trace in (secret.tobytes(), b"a picture of Anna", b"Anna"):
        assert not _anywhere(tmp_path, trace)
    assert [p.name for p in people] == ["Ben"]


def _anywhere(folder: Path, data: bytes) -> bool:
    return any(data in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def views(person: int, *numbers: int) -> list[Example]:
    return [Example(face_of(person, number)) for number in numbers]


@pytest.fixture
def george(invented: Library) -> Library:
    """A library that knows person 1 as George, also called Georgie."""
    invented.people.save("George", views(1, 1, 2))
    invented.people.edit("George", aliases=["Georgie"])
    return invented


def test_more_faces_of_the_same_person_under_the_same_name_are_added(george: Library) -> None:
    names = ("George", " George ", "Georgie", george.people.get("George").id)
    for view, name in enumerate(names, 10):
        person, notes = george.people.save(name, views(1, view))
        assert (person.name, notes) == ("George", [])
    assert george.people.get("George").examples == 6


def test_another_spelling_asks(george: Library) -> None:
    with pytest.raises(
        TakenError, match=r"'George' is saved already, with 2 .*'george' is spelt differently"
    ):
        george.people.save("george", views(1, 3))
    with pytest.raises(TakenError, match="if_exists 'add'") as caught:
        george.people.save("GEORGIE", views(1, 3))
    assert caught.value.person == asdict(george.people.get("George"))
    assert george.people.get("George").examples == 2
    assert george.people.save("george", views(1, 3), "add")[0].examples == 3


def test_faces_of_somebody_else_ask(george: Library) -> None:
    with pytest.raises(TakenError, match="this face does not look like them"):
        george.people.save("George", views(2, 1))
    with pytest.raises(TakenError, match="2 of these 3 example faces do not look like them"):
        george.people.save("George", [*views(2, 1, 2), *views(1, 3)])
    person, notes = george.people.save("George", views(2, 1), "add")
    assert person.examples == 3
    assert notes[0].startswith("1 of these 3 do not look like the same person")


def test_a_program_may_refuse_or_force(george: Library) -> None:
    with pytest.raises(TakenError):
        george.people.save("George", views(1, 3), "refuse")
    assert george.people.save("Anna", views(2, 1), "refuse")[0].examples == 1
    with pytest.raises(InvalidInputError, match="'ask', 'add', 'refuse'"):
        george.people.save("George", views(1, 3), "perhaps")


def test_mixed_examples_of_somebody_new_are_kept_and_said(invented: Library) -> None:
    person, notes = invented.people.save("Anna", [*views(1, 1), *views(2, 1), *views(3, 1)])
    assert person.examples == 3
    assert notes[0].startswith("2 of these 3 do not look like the same person: look at example 2, 3 of Anna")


def test_the_same_face_twice_counts_once(invented: Library) -> None:
    person, notes = invented.people.save("Anna", views(1, 1, 1, 2))
    assert person.examples == 2
    assert notes == ["1 example face Anna had already: the same face counts once"]
    again, notes = invented.people.save("Anna", views(1, 1, 2))
    assert (again.examples, again.change) == (2, None)
    assert notes == ["2 example faces Anna had already: the same face counts once"]


def test_whoever_has_no_example_left_gets_new_ones_without_question(george: Library) -> None:
    george.people.remove_examples("George", [1, 2])
    assert george.people.save("George", views(2, 1))[0].examples == 1
