"""The index under way knows what is described; rows of other tables with descriptors are described too."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from setnet.faces import FaceSettings
from setnet.faces.registry import write_model_entry
from setnet.library import Library
from setnet.library.reembed import face_rows, keep_current, open_new_index
from tests.support.small_models import write_small_model

SETTINGS = FaceSettings()


def filled(folder: Path) -> dict[int, tuple[float, int]]:
    """Store three photos; return when each was stored and its faces."""
    stored = {1: (1700000000.123456, 1), 2: (1700000001.5, 2), 3: (1700000002.25, 0)}
    with open_new_index(folder, SETTINGS, 128) as index:
        index.add(
            [str(photo) for photo in stored],
            np.eye(128, dtype=np.float32)[:3],
            [faces for _, faces in stored.values()],
            attributes=[{"stored": moment} for moment, _ in stored.values()],
        )
    return stored


def test_what_was_stored_is_known_again(tmp_path: Path) -> None:
    stored = filled(tmp_path)
    with open_new_index(tmp_path, SETTINGS, 128) as index:
        assert keep_current(index, stored) == {1, 2, 3}


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ({1: (1700000000.5, 1)}, {2, 3}),  # stored again
        ({2: (1700000001.5, 1)}, {1, 3}),  # with another number of faces
        ({3: None}, {1, 2}),  # removed
        ({4: (1.0, 1)}, {1, 2, 3}),  # new
    ],
)
def test_what_has_changed_since_is_taken_out(
    tmp_path: Path, changed: dict[int, tuple[float, int] | None], left: set[int]
) -> None:
    merged: dict[int, tuple[float, int] | None] = {**filled(tmp_path), **changed}
    wanted = {photo: facts for photo, facts in merged.items() if facts is not None}
    with open_new_index(tmp_path, SETTINGS, 128) as index:
        assert keep_current(index, wanted) == left
        assert {int(item.id) for item in index} == left


def test_an_index_of_other_settings_is_begun_again(tmp_path: Path) -> None:
    filled(tmp_path)
    with open_new_index(tmp_path, FaceSettings(min_face=60), 128) as index:
        assert not list(index)
    assert len(list((tmp_path / "reembedded").iterdir())) == 1


def test_one_that_was_not_finished_being_made_is_begun_again(tmp_path: Path) -> None:
    filled(tmp_path)
    (catalog,) = (tmp_path / "reembedded").rglob("catalog.sqlite")
    catalog.unlink()
    with open_new_index(tmp_path, SETTINGS, 128) as index:
        assert not list(index)


@pytest.fixture
def small(tmp_path: Path) -> str:
    model = write_small_model(tmp_path / "small.onnx")
    return str(write_model_entry(model, name="small", dim=24, calibration={"w": 20.0, "b": -8.0}))


LABEL = "INSERT INTO labels VALUES (?, 1, ?, ?, ?, ?, ?, x'00', 1, 0)"


def test_every_table_with_descriptors_is_found(library: Library, portrait: Callable[[str], str]) -> None:
    library.people.add_photos("Anna", [portrait("P001")])
    with library._database.writing() as db:
        db.execute(LABEL, (7, b"\0", 1, 2, 3, 4))
        example, label = face_rows(db)
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        described = {
            table
            for table in tables
            if "descriptor" in {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
        }
    assert described == {"examples", "labels", "removed_examples", "removed_labels"}
    assert (example.table, example.person) == ("examples", "Anna")
    assert example.source == portrait("P001").encode()
    assert example.picture is not None
    assert (label.table, label.id, label.content) == ("labels", 7, b"\0")
    assert (label.source, label.box, label.picture) == (None, (1, 2, 3, 4), None)


def test_what_was_said_about_a_face_follows_it_and_is_kept_when_its_photo_is_not_there(
    library: Library, portrait: Callable[[str], str], small: str
) -> None:
    library.people.add_photos("Anna", [portrait("P001")])
    photo = next(photo for photo in library.photos.all_photos() if photo.path.name == "three.jpg")
    x0, y0, x1, y1 = photo.faces[1].box
    with library._database.writing() as db:
        db.execute(LABEL, (1, photo.stored_hash, x0 + 2, y0 - 2, x1 + 2, y1 - 2))  # a little beside
        db.execute(LABEL, (2, b"\x77", 1, 2, 3, 4))
    library.close()
    Library.reembed(library.path, small, workers=0)
    with sqlite3.connect(library.path / "library.db") as raw:
        rows = dict(raw.execute("SELECT id, descriptor FROM labels").fetchall())
    raw.close()
    with Library.open(library.path) as again:
        np.testing.assert_array_equal(np.frombuffer(rows[1], "<f4"), again.photos.descriptors(photo.id)[1])
    assert not np.frombuffer(rows[2], "<f4").any()
    assert len(rows[2]) == 4 * 24
