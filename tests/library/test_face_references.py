"""A face is found again by its photo's content and its box, whatever became of file, photo and model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library import Library
from setnet.library.face_references import (
    FaceReference,
    refer_to_face,
    resolve_all_references,
    resolve_references,
)
from tests.support import invented_photos

SIDE = st.integers(0, 40)
BOXES = st.builds(lambda x, y, w, h: Box(x, y, x + w + 1, y + h + 1), SIDE, SIDE, SIDE, SIDE)


@given(BOXES, BOXES, st.integers(-50, 50))
def test_overlap_is_a_share_and_knows_no_order_or_origin(a: Box, b: Box, shift: int) -> None:
    share = a.overlap(b)
    assert 0 <= share <= 1
    assert a.overlap(a) == 1
    assert b.overlap(a) == share
    moved = [Box(*(value + shift for value in box)) for box in (a, b)]
    assert moved[0].overlap(moved[1]) == pytest.approx(share)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Photos of people 1 to 3, from left to right 100 pixels apart; one of them twice."""
    made = Library.create(tmp_path / "library")
    invented_photos.store(made, {"a": [1, 2], "b": [3]})
    return made


def test_every_face_is_found_by_its_own_reference(library: Library) -> None:
    places = [(int(p.id), f.ordinal) for p in library.photos.all_photos() for f in p.faces]
    with library._database.reading() as db:
        references = [refer_to_face(db, *place) for place in places]
        assert resolve_references(db, references) == places
    assert len(places) == 3


def test_a_box_that_is_a_little_different_is_the_same_face_and_another_is_not(library: Library) -> None:
    with library._database.reading() as db:
        content, box = refer_to_face(db, 1, 1)
        near = Box(box.x0 + 10, box.y0 - 10, box.x1 + 10, box.y1)
        far = Box(box.x0 + 60, box.y0, box.x1 + 60, box.y1)
        found = resolve_references(db, [FaceReference(content, b) for b in (near, far)])
        assert found == [(1, 1), None]
        assert resolve_references(db, [FaceReference(b"unknown content!", box)]) == [None]


def test_of_overlapping_faces_the_nearest_is_taken(library: Library) -> None:
    with library._database.writing() as db:
        db.execute("UPDATE faces SET x0 = 120, x1 = 200 WHERE photo = 1 AND ordinal = 1")  # 0 is at 100..180
        content = refer_to_face(db, 1, 0).content
        boxes = [Box(x, 50, x + 80, 150) for x in (100, 109, 111, 120)]
        found = resolve_references(db, [FaceReference(content, box) for box in boxes])
    assert found == [(1, 0), (1, 0), (1, 1), (1, 1)]


def test_each_copy_of_a_photo_has_the_face(library: Library) -> None:
    with library._database.writing() as db:
        reference = refer_to_face(db, 1, 0)
        db.execute("UPDATE photos SET hash = ? WHERE id = 2", (reference.content,))
        db.execute("UPDATE faces SET x0 = 100, x1 = 180 WHERE photo = 2")
        assert resolve_all_references(db, [reference]) == [[(1, 0), (2, 0)]]
        assert resolve_references(db, [reference]) == [(1, 0)]
        db.execute("UPDATE photos SET state = 'unread' WHERE id = 1")
        assert resolve_references(db, [reference]) == [(2, 0)]


def test_more_references_than_a_statement_takes(library: Library) -> None:
    with library._database.reading() as db:
        reference = refer_to_face(db, 1, 0)
        unknown = [FaceReference(n.to_bytes(16, "big"), reference.box) for n in range(2000)]
        found = resolve_references(db, [*unknown, reference])
    assert found == [None] * 2000 + [(1, 0)]


@pytest.mark.parametrize("place", [(1, 2), (9, 0), (1, -1)])
def test_a_face_that_is_not_there_has_no_reference(library: Library, place: tuple[int, int]) -> None:
    with library._database.reading() as db, pytest.raises(InvalidInputError, match="no face"):
        refer_to_face(db, *place)
