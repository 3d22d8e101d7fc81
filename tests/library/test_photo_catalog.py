"""The ids by which other programs know photos."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.library import Library
from setnet.library.photo_writer import PhotoWriter
from tests.support.invented_photos import store


def remove(library: Library, *ids: str) -> None:
    with library._writing() as index:
        PhotoWriter(library._database, index).remove([int(i) for i in ids])


def test_a_repair_keeps_external_ids(tmp_path: Path) -> None:
    place = tmp_path / "library"
    with Library.create(place) as library:
        store(library, {"a.jpg": [1], "b.jpg": [2]})
        library.photos.set_external_id("2", "B")
    shutil.rmtree(place / "index")
    Library.repair(place)
    with Library.open(place) as library:
        known = {
            row[0]
            for row in library._database.connection.execute(
                "SELECT external FROM photos WHERE external IS NOT NULL"
            )
        }
        assert known == {"B"}
        assert library.check() == []


def test_an_external_id_stays_with_its_photo_and_goes_with_it(tmp_path: Path) -> None:
    with Library.create(tmp_path / "library") as library:
        store(library, {"a.jpg": [1], "b.jpg": [2]})
        assert library.photos.set_external_id("1", "A").external_id == "A"
        store(library, {"a.jpg": [3]})
        found = library.photos.with_external_id("A")
        assert found is not None
        assert found.to_dict()["external_id"] == "A"
        with pytest.raises(InvalidInputError, match="that of photo 1"):
            library.photos.set_external_id("2", "A")
        for wrong in ("", "x" * 201, "a\nb"):
            with pytest.raises(InvalidInputError, match="1 to 200 printable"):
                library.photos.set_external_id("2", wrong)
        with pytest.raises(InvalidInputError, match="no photo"):
            library.photos.set_external_id("77", "A")
        remove(library, "1")
        assert library.photos.with_external_id("A") is None
        assert library.photos.set_external_id("2", "A").external_id == "A"
        assert library.check() == []
