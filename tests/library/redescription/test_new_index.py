"""The index under way knows what is described, whatever was cut short."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.faces import FaceSettings
from setnet.library.photos import LibraryPhoto
from setnet.library.reembed_state import NewIndex, ReembeddedPhoto

SETTINGS = FaceSettings()


def described(photo: int, faces: int = 1) -> ReembeddedPhoto:
    vectors = np.eye(128, dtype=np.float32)[:faces]
    known = LibraryPhoto(str(photo), b"/photos/%d.jpg" % photo, 1, b"", None, 10, 10, (None,) * faces)  # type: ignore[arg-type]
    return ReembeddedPhoto(known, vectors)


def filled(folder: Path) -> dict[int, tuple[float, int]]:
    """Store three photos; return when each was stored and its faces."""
    stored = {1: (1700000000.123456, 1), 2: (1700000001.5, 2), 3: (1700000002.25, 0)}
    with NewIndex(folder, SETTINGS, 128) as made:
        made.add([described(photo, faces) for photo, (_, faces) in stored.items()], stored)
        made.add([], stored)
    return stored


def test_what_was_stored_is_known_again(tmp_path: Path) -> None:
    stored = filled(tmp_path)
    with NewIndex(tmp_path, SETTINGS, 128) as made:
        assert made.only(stored) == {1, 2, 3}
        assert {item.id: dict(item.attributes)["folder"] for item in made.index.items()} == dict.fromkeys(
            "123", "/photos/"
        )


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
    with NewIndex(tmp_path, SETTINGS, 128) as made:
        assert made.only(wanted) == left
        assert {int(item.id) for item in made.index.items()} == left


@pytest.mark.parametrize("cut", range(1, 60, 3))
def test_a_log_that_was_cut_short_costs_work_and_nothing_else(tmp_path: Path, cut: int) -> None:
    stored = filled(tmp_path)
    log = tmp_path / "redescribed" / "photos.log"
    log.write_bytes(log.read_bytes()[:-cut])
    with NewIndex(tmp_path, SETTINGS, 128) as made:
        done = made.only(stored)
        assert done < set(stored)
        made.add([described(photo, stored[photo][1]) for photo in stored if photo not in done], stored)
    with NewIndex(tmp_path, SETTINGS, 128) as made:
        assert made.only(stored) == set(stored)


def test_an_index_of_other_settings_is_begun_anew(tmp_path: Path) -> None:
    stored = filled(tmp_path)
    with NewIndex(tmp_path, FaceSettings(min_face=60), 128) as made:
        assert made.only(stored) == set()
        assert not list(made.index.items())


def test_one_that_was_not_finished_being_made_is_begun_anew(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "redescribed" / "model.json").unlink()
    with NewIndex(tmp_path, SETTINGS, 128) as made:
        assert not list(made.index.items())
        made.delete()
    assert not (tmp_path / "redescribed").exists()
