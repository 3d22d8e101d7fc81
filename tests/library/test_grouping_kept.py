"""Names, hidden groups and ids outlive whatever happens to photos and to the library."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from setnet.faces.registry import write_model_entry
from setnet.library import Library
from setnet.library.photo_writer import PhotoWriter
from tests.support import invented_photos
from tests.support.small_models import write_small_model

GroupsIn = Callable[[Library], dict[str, tuple[str | None, set[str]]]]


def restore(library: Library, name: str, people: list[int], content: bytes) -> None:
    """Store a photo of a known name again, whose file has other bytes now."""
    result = replace(invented_photos._result(name, people, None), hash=content)
    with library._writing() as index:
        PhotoWriter(library._database, index).store([result])


def test_faces_stay_in_their_groups_when_photos_are_indexed_again(
    grouped: Library, groups_in: GroupsIn
) -> None:
    grouped.groups.name("g1", "Anna")
    grouped.groups.hide(["g4"])
    before = groups_in(grouped)
    invented_photos.store(grouped, {"a0": [1, 2], "c0": [4]})  # the same bytes
    assert groups_in(grouped) == before
    restore(grouped, "a1", [1, 2], bytes(16))  # tags were written into the file
    restore(grouped, "c0", [4], bytes([1] * 16))
    assert groups_in(grouped) == before
    assert grouped.groups.get("g4").hidden
    grouped.groups.update(again=True)
    assert groups_in(grouped) == before
    assert grouped.check() == []


def test_another_photo_in_the_place_of_one_inherits_no_group(grouped: Library, groups_in: GroupsIn) -> None:
    grouped.groups.hide(["g4"])
    other = replace(invented_photos._result("c0", [9], None), hash=bytes(16))
    other = replace(other, faces=invented_photos._result("c0", [4], None).faces)
    with grouped._writing() as index:
        PhotoWriter(grouped._database, index).store([other])
    assert "g4" not in grouped.groups
    assert grouped.groups.ungrouped_faces == 1


def test_groups_follow_moved_files_and_index_runs_find_them_ready(library: Library, photos: Path) -> None:
    assert [group.faces for group in library.groups.page()] == [3, 2, 2, 1]
    library.groups.name("g1", "Cleo")
    library.groups.hide(["g4"])
    before = {g.id: (g.name, g.hidden, g.faces) for g in library.groups.page()}
    os.rename(photos / "2016", photos / "moved")
    assert library.index(workers=0).moved == 2
    assert {g.id: (g.name, g.hidden, g.faces) for g in library.groups.page()} == before
    shutil.copy(photos / "moved" / "alone.jpg", photos / "copy.jpg")
    assert library.index(workers=0).copied == 1
    assert library.groups.get("g1").faces == 4
    (photos / "copy.jpg").unlink()
    assert library.index(workers=0, prune=True).removed == 1
    assert {g.id: (g.name, g.hidden, g.faces) for g in library.groups.page()} == before
    assert library.check() == []


def test_a_run_that_is_stopped_while_it_groups_keeps_its_photos(library: Library, photos: Path) -> None:
    shutil.copy(photos / "2016" / "alone.jpg", photos / "copy.jpg")
    stages: list[str] = []
    stopped = library.index(
        workers=0,
        progress=lambda now: stages.append(now.stage),
        should_stop=lambda: "grouping faces" in stages,
    )
    assert (stopped.interrupted, stopped.copied) == (True, 1)
    assert (library.groups.get("g1").faces, library.groups.ungrouped_faces) == (3, 1)
    assert not library.index(workers=0).interrupted
    assert library.groups.get("g1").faces == 4


def test_groups_of_forgotten_photos_are_gone_from_every_file(grouped: Library, groups_in: GroupsIn) -> None:
    grouped.groups.hide(["g4"])
    grouped.groups.name("g3", "Carl")
    grouped.forget(["/invented/c0", "/invented/b0"])
    found = groups_in(grouped)
    assert "g4" not in found
    assert found["g3"] == ("Carl", {f"b{n} 3" for n in range(1, 4)})
    assert [change.kind for change in grouped.people.history()] == ["erase", "name group"]
    assert grouped.check() == []
    with grouped._database.reading() as db:
        assert db.execute("SELECT count(*) FROM changed_rows WHERE tbl = 'face_groups'").fetchone() == (1,)


def test_the_groups_of_a_removed_person_have_no_name_and_no_history(grouped: Library) -> None:
    grouped.groups.name("g1", "Anna", [(grouped.groups.members("g1")[0].photo_id, 0)])
    grouped.people.remove("Anna")
    assert grouped.groups.get("g1").name is None
    grouped.people.undo()
    assert grouped.groups.get("g1").name == "Anna"
    grouped.people.remove("Anna", for_good=True)
    assert grouped.groups.get("g1").name is None
    assert [change.kind for change in grouped.people.history()] == ["erase"]
    with grouped._database.reading() as db:
        for table in ("examples", "removed_examples", "labels", "removed_labels"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM changed_rows WHERE tbl <> ''").fetchone() == (0,)
    assert grouped.check() == []


def test_groups_outlive_a_description_by_another_model(library: Library, tmp_path: Path) -> None:
    library.groups.name("g1", "Cleo")
    library.groups.hide(["g4"])
    before = {g.id: (g.name, g.hidden, g.faces) for g in library.groups.page()}
    small = write_small_model(tmp_path / "small.onnx")
    write_model_entry(small, name="small", dim=24, calibration={"w": 20.0, "b": -8.0})
    path = library.path
    library.close()
    assert Library.reembed(path, str(tmp_path / "small.toml"), workers=0).ok
    with Library.open(path) as described:
        assert {g.id: (g.name, g.hidden, g.faces) for g in described.groups.page()} == before
        assert described.check() == []


def test_a_backup_has_the_groups(grouped: Library, groups_in: GroupsIn, tmp_path: Path) -> None:
    grouped.groups.name("g1", "Anna")
    grouped.backup(tmp_path / "backup")
    with Library.open(tmp_path / "backup") as backup:
        assert groups_in(backup) == groups_in(grouped)
        assert backup.check() == []


def test_members_of_nothing_are_noticed(grouped: Library) -> None:
    with grouped._database.writing() as db:
        db.execute("INSERT INTO group_members VALUES (?, 1)", (999 * 65536,))
    assert any("1 members of groups" in problem for problem in grouped.check())


def test_exported_people_name_their_groups_in_another_library(
    grouped: Library, groups_in: GroupsIn, tmp_path: Path
) -> None:
    grouped.groups.name("g1", "Anna")
    grouped.groups.name("g3", "Carl", [(grouped.photos.photo_at(b"/invented/b0").id, 0)])
    grouped.people.export(tmp_path / "people.json")
    with Library.create(tmp_path / "new") as new:
        invented_photos.store(new, {f"b{n}": [3] for n in range(4)} | {f"a{n}": [1, 2] for n in range(6)})
        new.groups.update()
        new.people.import_file(tmp_path / "people.json")
        new.groups.update()
        found = {name: faces for name, faces in groups_in(new).values() if name}
        assert found == {"Anna": {f"a{n} 1" for n in range(6)}, "Carl": {f"b{n} 3" for n in range(1, 4)}}


def test_a_damaged_quality_does_not_keep_faces_from_being_grouped(grouped: Library) -> None:
    with grouped._database.writing() as db:
        db.execute("UPDATE faces SET quality = 'nothing' WHERE photo = 1")
    assert grouped.groups.update(again=True).groups == 4
    assert np.isfinite([group.faces for group in grouped.groups.page()]).all()
