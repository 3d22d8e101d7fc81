"""Copies of a photo are found and grouped; what a library knows of its photos saves work."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from setnet.errors import StorageError
from setnet.library import DuplicateGroup, Library, find_duplicates
from setnet.library.duplicates import PhotoPairs
from setnet.library.paths import VLADS


def names(groups: Sequence[DuplicateGroup]) -> list[list[str]]:
    return [[path.name for path in group.photos] for group in groups]


def test_copies_are_found_and_different_photos_are_not(planted: Path) -> None:
    before = sorted(planted.rglob("*"))
    failed: list[tuple[Path, str]] = []
    stages: list[str] = []
    groups = find_duplicates(
        [planted],
        workers=0,
        on_failure=lambda path, reason: failed.append((path, reason)),
        progress=lambda stage, done, total: stages.append(stage),
    )
    assert names(groups) == [["P001.jpg", "cropped.png", "small.jpg"], ["P003.jpg", "mirrored.jpg"]]
    assert [path.name for path, _ in failed] == ["broken.jpg"]
    assert list(dict.fromkeys(stages)) == ["reading", "comparing", "verifying"]
    assert sorted(planted.rglob("*")) == before, "nothing is written beside the photos"


def test_worker_processes_find_the_same_in_any_order(planted: Path) -> None:
    photos = [path for path in sorted(planted.rglob("*")) if path.is_file()]
    alone = find_duplicates(photos, workers=0)
    assert find_duplicates(photos[::-1], workers=2) == alone
    assert find_duplicates([*photos, *photos, planted], workers=0) == alone


def test_the_same_bytes_are_copies_also_of_a_flat_photo_and_links_are_not(tmp_path: Path) -> None:
    Image.new("RGB", (60, 40), "gray").save(tmp_path / "b.png")
    Image.new("RGB", (50, 40), "white").save(tmp_path / "c.png")
    shutil.copy(tmp_path / "b.png", tmp_path / "d.png")
    os.symlink(tmp_path / "b.png", tmp_path / "a.png")
    assert names(find_duplicates([tmp_path], workers=0)) == [["b.png", "d.png"]]


def test_no_photos_and_missing_ones_are_no_error(tmp_path: Path) -> None:
    failed: list[Path] = []
    assert find_duplicates([], workers=0) == []
    gone = tmp_path / "gone.jpg"
    assert find_duplicates([gone], workers=0, on_failure=lambda path, _: failed.append(path)) == []
    assert failed == [gone]


def test_the_largest_photo_comes_first() -> None:
    pixels = {Path("/b"): 5, Path("/a"): 5, Path("/c"): 8}
    assert DuplicateGroup.of(pixels) == DuplicateGroup((Path("/c"), Path("/a"), Path("/b")), (8, 5, 5))


@pytest.fixture
def indexed(planted: Path, tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as library:
        library.index([planted], workers=0)
        yield library


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the photos that were read, over all runs."""
    names: list[str] = []
    describe = PhotoPairs._describe

    def counted(self: PhotoPairs, path: bytes) -> Any:
        names.append(Path(path.decode()).name)
        return describe(self, path)

    monkeypatch.setattr(PhotoPairs, "_describe", counted)
    return names


def test_a_second_run_reads_only_photos_that_changed(
    indexed: Library, planted: Path, read: list[str]
) -> None:
    groups = indexed.photos.duplicates(workers=0)
    assert [len(group.photos) for group in groups] == [3, 2]
    assert len(read) == 7
    read.clear()
    assert indexed.photos.duplicates(workers=0) == groups
    assert read == []
    (planted / "P005.jpg").write_bytes((planted / "P001.jpg").read_bytes())
    assert [len(group.photos) for group in indexed.photos.duplicates(workers=0)] == [4, 2]
    assert read == ["P005.jpg"]


def test_a_damaged_cache_is_made_again(indexed: Library, read: list[str]) -> None:
    groups = indexed.photos.duplicates(workers=0)
    for damage in (b"no database at all" * 100, b""):
        (indexed.path / VLADS).write_bytes(damage)
        assert indexed.photos.duplicates(workers=0) == groups
    read.clear()
    assert indexed.photos.duplicates(workers=0) == groups
    assert read == []


def test_what_was_read_before_an_interrupt_is_kept(indexed: Library, read: list[str]) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "reading" and done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        indexed.photos.duplicates(workers=0, progress=interrupt)
    read.clear()
    assert len(indexed.photos.duplicates(workers=0)) == 2
    assert len(read) == 3, "four of seven are known"


def test_forgetting_a_photo_deletes_what_was_kept_of_it(indexed: Library, planted: Path) -> None:
    indexed.photos.duplicates(workers=0)
    assert (indexed.path / VLADS).stat().st_mode & 0o777 == 0o600
    indexed.forget([planted / "P010.jpg"])
    assert not (indexed.path / VLADS).exists()


def test_a_library_that_cannot_be_written_is_searched_all_the_same(
    indexed: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, **arrays: Any) -> None:
        raise StorageError(f"cannot write {path}: Permission denied")

    monkeypatch.setattr("setnet.library.duplicates.write_arrays", refused)
    assert len(indexed.photos.duplicates(workers=0)) == 2


def test_a_second_run_compares_only_pairs_that_are_new(
    indexed: Library, planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[str, str]] = []
    compare = PhotoPairs._compare

    def counted(self: PhotoPairs, pair: Any) -> Any:
        compared.append((Path(pair[0].decode()).name, Path(pair[1].decode()).name))
        return compare(self, pair)

    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "verifying" and done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(PhotoPairs, "_compare", counted)
    with pytest.raises(KeyboardInterrupt):
        indexed.photos.duplicates(workers=0, progress=interrupt)
    before = len(compared)
    groups = indexed.photos.duplicates(workers=0)
    assert 0 < before < len(compared) == len(set(compared))
    compared.clear()
    assert indexed.photos.duplicates(workers=0) == groups
    assert compared == []
    (planted / "P010.jpg").rename(planted / "moved.jpg")
    indexed.index(workers=0)
    assert indexed.photos.duplicates(workers=0) == groups
    assert compared == [], "the content is what counts"
