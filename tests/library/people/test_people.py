from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.library.people.erasure import erase_photos
from setnet.library.people.example import Example
from setnet.library.people.people import People
from setnet.library.store.database import Database


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(Database(tmp_path / "library.db"), dim=4)


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


BIDI, SURROGATE, JOINERS = "a\u202eb", "a\ud800", "\u200c\u200d"


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "x" * 201, BIDI, SURROGATE, JOINERS, "\u200ba"])
def test_names_must_be_printable(people: People, name: str) -> None:
    with pytest.raises(InvalidInputError, match="printable"):
        people.add(name, [example(1, 0, 0, 0)])


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
    people.remove("anna")
    for trace in (secret.tobytes(), b"a picture of Anna", b"Anna"):
        assert not _anywhere(tmp_path, trace)
    assert [p.name for p in people] == ["Ben"]


def _anywhere(folder: Path, data: bytes) -> bool:
    return any(data in file.read_bytes() for file in folder.rglob("*") if file.is_file())
