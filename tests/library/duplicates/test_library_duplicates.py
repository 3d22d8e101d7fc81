from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from setnet.library import Library
from setnet.library.duplicates import PhotoPairs
from setnet.library.paths import VLADS


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
    groups = indexed.duplicates(workers=0)
    assert [len(group.photos) for group in groups] == [3, 2]
    assert len(read) == 7
    read.clear()
    assert indexed.duplicates(workers=0) == groups
    assert read == []
    (planted / "P005.jpg").write_bytes((planted / "P001.jpg").read_bytes())
    assert [len(group.photos) for group in indexed.duplicates(workers=0)] == [4, 2]
    assert read == ["P005.jpg"]


def test_a_damaged_cache_is_made_anew(indexed: Library, read: list[str]) -> None:
    groups = indexed.duplicates(workers=0)
    for damage in (b"no database at all" * 100, b""):
        (indexed.path / VLADS).write_bytes(damage)
        assert indexed.duplicates(workers=0) == groups
    read.clear()
    assert indexed.duplicates(workers=0) == groups
    assert read == []


def test_what_was_read_before_an_interrupt_is_kept(indexed: Library, read: list[str]) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "reading" and done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        indexed.duplicates(workers=0, progress=interrupt)
    read.clear()
    assert len(indexed.duplicates(workers=0)) == 2
    assert len(read) == 3, "four of seven are known"


def test_forgetting_a_photo_deletes_what_was_kept_of_it(indexed: Library, planted: Path) -> None:
    indexed.duplicates(workers=0)
    assert (indexed.path / VLADS).stat().st_mode & 0o777 == 0o600
    indexed.forget([planted / "P010.jpg"])
    assert not (indexed.path / VLADS).exists()


def test_a_library_that_cannot_be_written_is_searched_all_the_same(
    indexed: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("setnet.library.duplicates.make_private", refused)
    assert len(indexed.duplicates(workers=0)) == 2
