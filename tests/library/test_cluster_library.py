"""A library whose faces are kept by a cluster behaves as any other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import invented_photos
from command_line import answered, called
from setnet.cluster.storage.places import shard_of
from setnet.errors import InvalidInputError, LockedError
from setnet.library import Library

PHOTOS = {f"{i}.jpg": [i % 3, 3 + i % 4, 7 + i % 2][: 1 + i % 3] for i in range(24)}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Library, Library]]:
    with (
        Library.create(tmp_path / "one") as one,
        Library.create(tmp_path / "many", shards=3) as many,
    ):
        for library in (one, many):
            invented_photos.store(library, PHOTOS)
        yield one, many


def test_photos_are_found_as_in_one_index(both: tuple[Library, Library]) -> None:
    _one, many = both
    people = [invented_photos.face_of(person) for person in (0, 3)]
    for options in ({}, {"mode": "fast"}, {"mode": "set"}, {"at_least": 2}, {"only": True}, {"k": 3}):
        found = [[(hit.path, hit.score) for hit in lib.search(people, **options)] for lib in both]
        assert [path for path, _ in found[0]] == [path for path, _ in found[1]], options
        assert [score for _, score in found[0]] == pytest.approx([score for _, score in found[1]], abs=1e-5)
    assert many.check() == []


def test_faces_are_grouped_and_named(both: tuple[Library, Library]) -> None:
    counts = []
    for library in both:
        library.discover()
        counts.append(library.groups.totals(min_faces=2))
    assert counts[0] == counts[1]


def test_removed_photos_are_gone_from_all_shards(both: tuple[Library, Library]) -> None:
    _, many = both
    ids = [item.id for item in many.set_index.items()][:5]
    invented_photos.remove(many, ids)
    assert not set(ids) & {item.id for item in many.set_index.items()}
    assert many.check() == []


def test_what_needs_one_index_is_refused(both: tuple[Library, Library], tmp_path: Path) -> None:
    _, many = both
    with pytest.raises(InvalidInputError, match="shared with a group"):
        many.set_group_readable(True)
    with many.locked(), pytest.raises(LockedError, match="being written"):
        invented_photos.store(many, PHOTOS)
    with pytest.raises(InvalidInputError, match=r"is a cluster.*docs/cluster.md"):
        Library.redescribe(many.path)


def test_photos_of_a_damaged_shard_are_read_again(both: tuple[Library, Library]) -> None:
    _, many = both
    lost = sum(shard_of(item.id, 3) == 1 for item in many.set_index.items())
    many.close()
    (segment,) = many.path.glob("index/epoch-*/shard-0001/work-*/segments/*.seg")
    os.truncate(segment, segment.stat().st_size - 100)
    assert "shard-0001" in called("cluster", "check", many.path, code=1)[0]
    done = answered("repair", many.path, code=1)
    assert (done["photos"], done["to_read"]) == (len(PHOTOS) - lost, lost)
    assert any(text.startswith("index of faces, shard 1: segment 1") for text in done["lost"])
    with Library.open(many.path) as repaired:
        assert len(repaired.set_index) == len(PHOTOS) - lost
        assert repaired.check() == []
    assert answered("repair", many.path)["lost"] == []


def test_a_backup_is_a_cluster_that_can_be_written(both: tuple[Library, Library], tmp_path: Path) -> None:
    _, many = both
    query = [invented_photos.face_of(person) for person in (0, 3)]
    expected = [(hit.path, hit.score) for hit in many.search(query)]
    for _ in range(2):  # a second one replaces the first
        assert many.backup(tmp_path / "copy").photos == len(PHOTOS)
    Library.restore(tmp_path / "copy", tmp_path / "again")
    for place in ("copy", "again"):
        with Library.open(tmp_path / place) as copy:
            assert [(hit.path, hit.score) for hit in copy.search(query)] == expected
            invented_photos.store(copy, {"new.jpg": [1, 2]})
            assert copy.check() == []
            assert len(copy.set_index) == len(PHOTOS) + 1
    assert len(many.set_index) == len(PHOTOS)
    with many.locked(), pytest.raises(LockedError, match="being written"):
        many.backup(tmp_path / "other")


def test_the_command_line_makes_and_describes_a_cluster(tmp_path: Path) -> None:
    place = tmp_path / "c"
    called("cluster", "create", place, "--shards", 2)
    assert answered("cluster", "status", place)["shards"] == 2
    assert answered("cluster", "publish", place) == {"items": 0}
    called("cluster", "grow", place, 4)
    assert answered("cluster", "check", place)["ok"]
    assert "not running" in called("search", "--cluster", place, "anna.jpg", code=2)[1]
    assert "holds no cluster" in called("serve", "--cluster", tmp_path, code=2)[1]
    assert "not both" in called("search", "--cluster", place, "--library", place, "anna.jpg", code=2)[1]
    assert "holds a library already" in called("cluster", "create", place, code=2)[1]
