"""Which example faces are one person's, and which are one face."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from setnet.faces import Box
from setnet.heads import Logistic
from setnet.library import Example
from setnet.library.examples import KnownFaces, mixed_warning, outsiders
from tests.support.invented_photos import face_of

LOGISTIC = Logistic(20.0, -8.0)
BOX = Box(0, 0, 80, 100)


def faces(*people: int) -> NDArray[np.float32]:
    """Return a face for each person named, every time another view."""
    return np.stack([face_of(person, view) for view, person in enumerate(people, 1)])


@pytest.mark.parametrize(
    ("people", "odd"),
    [
        ((1,), []),
        ((1, 1), []),
        ((1, 2), [1]),
        ((1, 1, 1, 1), []),
        ((1, 1, 2), [2]),
        ((2, 1, 1), [0]),
        ((1, 2, 3), [1, 2]),
        ((1, 2, 2, 1, 1), [1, 2]),
        ((1, 2, 1, 3, 1), [1, 3]),
    ],
)
def test_faces_of_other_people_are_told_apart(people: tuple[int, ...], odd: list[int]) -> None:
    assert outsiders(faces(*people), LOGISTIC) == odd


def test_the_faces_that_were_there_say_who_it_is() -> None:
    both = faces(1, 2, 2, 2)
    assert outsiders(both, LOGISTIC) == [0]
    assert outsiders(both, LOGISTIC, known=1) == [1, 2, 3]


@given(st.lists(st.integers(1, 3), min_size=2, max_size=7), st.randoms(use_true_random=False))
def test_the_order_of_faces_changes_nothing_but_who_wins_a_tie(people: list[int], chance: object) -> None:
    order = list(range(len(people)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    rows = faces(*people)
    counts = sorted(map(people.count, set(people)))
    if counts.count(counts[-1]) > 1:
        return
    shuffled = outsiders(rows[order], LOGISTIC)
    assert sorted(order[face] for face in shuffled) == outsiders(rows, LOGISTIC)


def example(person: int, view: int, number: int | None = None, **more: object) -> Example:
    return Example(face_of(person, view), number=number, **more)  # type: ignore[arg-type]


def test_a_warning_counts_and_names_the_odd_ones() -> None:
    three = [example(person, view, 10 + view) for view, person in enumerate((1, 2, 3))]
    (text,) = mixed_warning("Anna", [], three, LOGISTIC)
    assert text.startswith("2 of these 3 do not look like the same person: look at example 11, 12 of Anna")
    (text,) = mixed_warning("Anna", three[:1], three[:2], LOGISTIC)
    assert text.startswith("these 2 do not look like the same person")
    assert mixed_warning("Anna", [], three[:1], LOGISTIC) == []
    assert mixed_warning("Anna", [], [example(1, view, view) for view in range(4)], LOGISTIC) == []


def test_what_was_said_before_is_not_said_again() -> None:
    before = [example(person, view, view) for view, person in enumerate((1, 1, 2))]
    assert mixed_warning("Anna", before, [*before, example(1, 7, 7)], LOGISTIC) == []
    assert mixed_warning("Anna", before, [*before, example(3, 7, 7)], LOGISTIC)


def test_the_same_face_is_known_by_its_place_or_its_descriptor() -> None:
    known = KnownFaces([example(1, 1, content=b"photo", box=BOX), example(2, 1)])
    assert example(1, 2, content=b"photo", box=Box(2, 2, 82, 98)) in known  # described a little differently
    assert example(1, 2, content=b"photo", box=Box(200, 0, 280, 100)) not in known
    assert example(1, 2, content=b"other", box=BOX) not in known
    assert Example(2 * face_of(2, 1)) in known
    assert example(2, 2) not in known
    assert example(1, 2) not in KnownFaces([])
