"""Named faces written to sidecars, and read back."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from setnet.connect import import_tags, write_tags
from setnet.connect.xmp import regions_in_xmp
from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library import Library
from tests.support.invented_photos import area_of
from tests.support.tag_files import lightroom, packet

SIZE = (1600, 1200)


@pytest.fixture
def named(library: Library, add_photo: Any) -> Library:
    """A library of four photos in which Anna (1) and Ben (2) are known by the first."""
    add_photo("a.jpg", 1, 2, xmp=lightroom({"Anna": area_of(1), "Ben": area_of(2)}, SIZE))
    add_photo("b.jpg", 1, 3)
    add_photo("c.jpg", 2, orientation=6)
    add_photo("d.jpg", 3)
    import_tags(library)
    return library


def names_in(sidecar: Path) -> set[str]:
    return {region.name for found in regions_in_xmp(sidecar.read_bytes()) for region in found.regions}


def test_sure_faces_are_written_and_read_back_as_the_same(
    named: Library, tmp_path: Path, add_photo: Any
) -> None:
    photos = {path: hashlib.sha256(path.read_bytes()).digest() for path in (tmp_path / "photos").iterdir()}
    done = write_tags(named)
    assert [path.name for path in done.created] == ["b.jpg.xmp", "c.jpg.xmp"]
    assert (done.photos, done.unchanged, dict(done.regions)) == (3, 1, {"Anna": 1, "Ben": 1})
    assert all(hashlib.sha256(path.read_bytes()).digest() == digest for path, digest in photos.items())
    named.people.remove("Anna", "Ben")
    import_tags(named)
    faces = {
        (label.person, named.photos.get(label.photo_id or "").path.name, label.face)
        for name in ("Anna", "Ben")
        for label in named.people.labels(name)
    }
    assert faces == {("Anna", "a.jpg", 0), ("Anna", "b.jpg", 0), ("Ben", "a.jpg", 1), ("Ben", "c.jpg", 0)}


def test_a_second_run_writes_nothing(named: Library) -> None:
    write_tags(named)
    again = write_tags(named, update=True)
    assert (again.created, again.updated, again.unchanged) == ([], [], 3)


def test_a_turned_photo_gets_regions_of_the_stored_picture(named: Library, tmp_path: Path) -> None:
    write_tags(named, ["Ben"])
    (found,) = regions_in_xmp((tmp_path / "photos" / "c.jpg.xmp").read_bytes())
    assert list(found.size or ()) == [1200, 1600]  # upright it is 1600 x 1200
    assert not (tmp_path / "photos" / "b.jpg.xmp").exists()  # Anna was not asked for


def test_a_dry_run_writes_nothing(named: Library, tmp_path: Path) -> None:
    before = sorted((tmp_path / "photos").iterdir())
    assert len(write_tags(named, dry_run=True).created) == 2
    assert sorted((tmp_path / "photos").iterdir()) == before


@pytest.mark.parametrize("name", ["b.jpg.xmp", "b.xmp"])
def test_an_existing_sidecar_is_kept_unless_asked(named: Library, tmp_path: Path, name: str) -> None:
    sidecar = tmp_path / "photos" / name
    before = packet("<!-- rating and all -->")
    sidecar.write_bytes(before)
    sidecar.chmod(0o640)
    kept = write_tags(named, ["Anna"])
    assert (kept.kept, kept.created, sidecar.read_bytes()) == ([sidecar], [], before)
    done = write_tags(named, ["Anna"], update=True)
    assert done.updated == [sidecar]
    assert names_in(sidecar) == {"Anna"}
    assert b"<!-- rating and all -->" in sidecar.read_bytes()
    assert sidecar.with_name(f"{name}.bak").read_bytes() == before
    assert sidecar.stat().st_mode & 0o777 == 0o640
    assert not list(sidecar.parent.glob("*.new"))


def test_an_earlier_backup_is_never_replaced(named: Library, tmp_path: Path) -> None:
    sidecar = tmp_path / "photos" / "b.jpg.xmp"
    sidecar.write_bytes(packet(""))
    sidecar.with_name("b.jpg.xmp.bak").write_bytes(b"precious")
    write_tags(named, update=True)
    assert sidecar.with_name("b.jpg.xmp.bak").read_bytes() == b"precious"
    assert sidecar.with_name("b.jpg.xmp.bak2").read_bytes() == packet("")


def test_a_face_that_is_called_otherwise_is_reported(named: Library, tmp_path: Path) -> None:
    sidecar = tmp_path / "photos" / "b.jpg.xmp"
    sidecar.write_bytes(lightroom({"Nan": area_of(1)}, SIZE))
    done = write_tags(named, update=True)
    assert [(c.photo.name, c.face, c.name, c.owner) for c in done.conflicts] == [("b.jpg", 1, "Anna", "Nan")]
    assert names_in(sidecar) == {"Nan"}


def test_regions_inside_a_photo_are_in_its_new_sidecar_too(named: Library, add_photo: Any) -> None:
    photo = add_photo("e.jpg", 1, 5, xmp=lightroom({"Eve": area_of(5)}, SIZE))
    write_tags(named)
    assert names_in(photo.with_name("e.jpg.xmp")) == {"Anna", "Eve"}


def test_a_region_is_added_in_the_frame_of_those_that_are_there(named: Library, add_photo: Any) -> None:
    photo = add_photo("e.jpg", 1, 5, orientation=8)
    photo.with_name("e.xmp").write_bytes(lightroom({"Eve": area_of(5)}, SIZE))  # upright
    write_tags(named, update=True)
    (found,) = regions_in_xmp(photo.with_name("e.xmp").read_bytes())
    x, y, _, _ = area_of(1)
    anna = found.regions[1].area
    assert ((anna.x0 + anna.x1) / 2, (anna.y0 + anna.y1) / 2) == pytest.approx((x, y), abs=1e-5)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(named: Library, tmp_path: Path) -> None:
    (tmp_path / "photos").chmod(0o500)
    done = write_tags(named)
    (tmp_path / "photos").chmod(0o700)
    assert {path.name for path, _ in done.failed} == {"b.jpg.xmp", "c.jpg.xmp"}


def test_a_full_disk_leaves_the_sidecar_and_no_half_file(
    named: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    sidecar = tmp_path / "photos" / "b.jpg.xmp"
    sidecar.write_bytes(packet(""))
    monkeypatch.setattr(os, "fsync", full)
    done = write_tags(named, update=True)
    assert {why for _, why in done.failed} == {"cannot be written (No space left on device)"}
    assert sidecar.read_bytes() == packet("")
    assert not list(sidecar.parent.glob("*.new"))


def test_photos_that_are_gone_get_no_sidecar(named: Library, tmp_path: Path) -> None:
    (tmp_path / "photos" / "b.jpg").unlink()
    done = write_tags(named)
    assert [path.name for path, _ in done.failed] == ["b.jpg"]
    assert not (tmp_path / "photos" / "b.jpg.xmp").exists()


def test_nobody_to_write_is_an_error(library: Library) -> None:
    with pytest.raises(InvalidInputError, match="nobody is saved"):
        write_tags(library)


def test_names_come_back_to_the_same_faces_of_upright_and_turned_photos(
    compose: Callable[..., None], library: Library, tmp_path: Path
) -> None:
    upright, turned = tmp_path / "photos" / "upright.jpg", tmp_path / "photos" / "turned.jpg"
    compose(upright, ("P001", "P003"))
    compose(turned, ("P003", "P001"), tile=3)
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by a quarter clockwise
    with Image.open(turned) as image:
        image.transpose(Image.Transpose.ROTATE_90).save(turned, quality=92, exif=exif)
    library.index([tmp_path / "photos"], workers=0)
    library.people.add_photos("Anna", [f"{upright}#1"])
    assert dict(write_tags(library).regions) == {"Anna": 2}
    library.people.remove("Anna")
    done = import_tags(library)
    assert (done.named, done.not_found, done.conflicts, done.unreadable) == (2, [], [], [])
    faces = {
        (library.photos.get(label.photo_id or "").path, label.face) for label in library.people.labels("Anna")
    }
    assert faces == {(upright, 0), (turned, 1)}


def test_a_box_that_the_user_tagged_is_written(named: Library, tmp_path: Path) -> None:

    photo = next(photo for photo in named.photos.all_photos() if photo.path.name == "d.jpg")
    named.people.tag("Ben", photo.id, Box(800, 600, 960, 840))
    assert write_tags(named, ["Ben"]).regions["Ben"] == 2
    (found,) = regions_in_xmp((tmp_path / "photos" / "d.jpg.xmp").read_bytes())
    (region,) = found.regions
    assert (region.name, *region.area) == ("Ben", *map(pytest.approx, (0.5, 0.5, 0.6, 0.7)))
