"""A library that keeps the descriptors of a photo in a fixed number of bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.faces import model_entry, model_paths
from setnet.faces.registry import write_model_entry
from setnet.library import Library
from setnet.library.collection import CollectedPhotos, index_into
from tests.support.command_line import answered, called


@pytest.fixture
def small(
    tmp_path: Path, photos: Path, reading_known: Callable[[], AbstractContextManager[None]]
) -> Iterator[Library]:
    """A library of the album with 64 bytes for each photo."""
    with Library.create(tmp_path / "small", bytes_per_photo=64) as made:
        with reading_known():
            made.index([photos], workers=0)
        yield made


def test_it_finds_groups_and_names_as_with_floats(
    small: Library, library: Library, portrait: Callable[[str], str], tmp_path: Path
) -> None:
    for one in (small, library):
        one.people.add_photos("Anna", [portrait("P001")])
        one.people.add_photos("Ben", [portrait("P003")])
        assert one.check() == []
    for people in (["Anna"], ["Ben"], ["Anna", "Ben"], [portrait("P005")]):
        exact, found = (
            {hit.path: hit.matches for hit in one.search(people, at_least=1)} for one in (library, small)
        )
        assert exact
        assert exact.keys() == found.keys()
    sizes = [sorted(group.faces for group in one.groups.page()) for one in (small, library)]
    assert sizes[0] == sizes[1]
    photo = next(photo for photo in small.photos.all_photos() if len(photo.faces) > 1)
    codes = small.photos.descriptors(photo.id)
    floats = next(p for p in library.photos.all_photos() if p.path == photo.path)
    same = np.einsum("ij,ij->i", codes, library.photos.descriptors(floats.id))
    assert same.min() > 0.9
    assert same.max() < 0.9999, "these are no floats"
    with pytest.raises(InvalidInputError, match="no set vectors"):
        small.search(["Anna"], mode="set")
    status = small.status()
    assert (status.bytes_per_photo, status.crowded, status.set_vectors) == (64, 0, "none")
    kept = [
        sum(f.stat().st_size for f in (one.path / "index" / "segments").iterdir()) for one in (small, library)
    ]
    assert kept[0] < kept[1] / 3
    with Library.open_or_create(small.path, bytes_per_photo=64), Library.open_or_create(small.path):
        pass
    with pytest.raises(InvalidInputError, match=r"64 bytes for each photo.*--bytes-per-photo"):
        Library.open_or_create(small.path, bytes_per_photo=128)
    with pytest.raises(InvalidInputError, match="floats"):
        Library.open_or_create(library.path, bytes_per_photo=128)
    with pytest.raises(InvalidInputError, match="bytes_per_photo is 15: valid are 16"):
        Library.create(tmp_path / "less", bytes_per_photo=15)
    assert not (tmp_path / "less").exists()


def test_reembedding_repair_and_backups_keep_it(small: Library, tmp_path: Path) -> None:
    (source,) = model_paths(model_entry("sface", "descriptor")).values()
    copy = Path(shutil.copy(source, tmp_path / "bgr.onnx"))
    place = small.path
    assert Library.reembed(
        place, str(write_model_entry(copy, name="bgr", dim=128, colour="bgr")), workers=0
    ).ok
    with Library.open(place) as again:
        assert again.set_index.shape.bytes_per_item == 64
        again.backup(tmp_path / "backup")
    Library.restore(tmp_path / "backup", tmp_path / "restored")
    for lost in ("library.db", "library.journal"):
        (place / lost).unlink()
    shutil.rmtree(place / "copies", ignore_errors=True)
    Library.repair(place)
    with Library.open(place) as again:
        assert again.status().bytes_per_photo == 64
    for part in ("index", "quarantine"):
        shutil.rmtree(place / part)
    Library.repair(place)
    for path in (place, tmp_path / "restored"):
        with Library.open(path) as again:
            assert again.set_index.shape.bytes_per_item == 64


def test_the_command_and_collections(
    photos: Path, tmp_path: Path, reading_known: Callable[[], AbstractContextManager[None]]
) -> None:
    pytest.importorskip("pyarrow")
    place = tmp_path / "collection"
    with reading_known():
        index_into(place, [photos], workers=0, bytes_per_photo=32)
        with pytest.raises(InvalidInputError, match="32 bytes"):
            index_into(place, [photos], workers=0, bytes_per_photo=64)
    assert CollectedPhotos(place).bytes_per_photo == 32
    cases: list[tuple[str, list[object], int]] = [("like", [], 32), ("more", ["--bytes-per-photo", 64], 64)]
    for library, options, kept in cases:
        words = ["index", "--from", place, "--library", tmp_path / library, *options]
        answered(*words, code=1)  # one file of the album cannot be read
        with Library.open(tmp_path / library) as adopted:
            status = adopted.status()
            assert (status.bytes_per_photo, status.counts.photos) == (kept, 5)
    said, _ = called("status", "--library", tmp_path / "like")
    assert "codes of 32 bytes for the faces of a photo" in said
