"""People named by the tags that other programs wrote into photos and beside them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from setnet.connect import import_tags
from setnet.connect.face_regions import rotate_back
from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library import Library
from tests.support.invented_photos import area_of
from tests.support.tag_files import elements, lightroom, microsoft

SIZE = (1600, 1200)


def confirmed(library: Library, name: str) -> set[tuple[str, int | None]]:
    """Return the faces that are confirmed as a person's: name of the photo, number of the face from 0."""
    return {
        (library.photos.get(label.photo_id).path.name, label.face)
        for label in library.people.labels(name)
        if label.is_match and label.photo_id is not None
    }


def test_embedded_regions_name_people_and_undo_takes_it_back(library: Library, add_photo: Any) -> None:
    add_photo("a.jpg", 1, 2, xmp=lightroom({"Anna": area_of(1), "Ben": area_of(2)}, SIZE))
    add_photo("b.png", 2, 3, xmp=elements({"ben": area_of(2)}, SIZE))
    add_photo("c.jpg", 3)
    done = import_tags(library)
    assert (done.photos, done.tagged, done.people, done.new, done.named) == (3, 2, 2, 2, 3)
    assert confirmed(library, "Anna") == {("a.jpg", 0)}
    assert confirmed(library, "Ben") == {("a.jpg", 1), ("b.png", 0)}
    assert library.people.get("Ben").examples == 2
    assert library.people.get("Ben").has_picture
    assert [hit.path.name for hit in library.search(["Anna", "Ben"], k=1)] == ["a.jpg"]
    assert library.people.undo().undoes == done.change
    assert len(library.people) == 0


def test_a_second_run_changes_nothing(library: Library, add_photo: Any) -> None:
    add_photo("a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    import_tags(library)
    commit = library.photos.commit()
    again = import_tags(library)
    assert (again.named, again.known, again.change) == (0, 1, None)
    assert library.photos.commit() == commit


def test_a_dry_run_reports_and_changes_nothing(library: Library, add_photo: Any) -> None:
    add_photo("a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    done = import_tags(library, dry_run=True)
    assert (done.people, done.new, done.faces, done.change) == (1, 1, {"Anna": 1}, None)
    assert len(library.people) == 0


@pytest.mark.parametrize("name", ["a.jpg.xmp", "a.xmp", "a.XMP"])
def test_sidecars_are_read_under_both_names(library: Library, add_photo: Any, name: str) -> None:
    photo = add_photo("a.jpg", 1)
    photo.with_name(name).write_bytes(lightroom({"Anna": area_of(1)}, SIZE))
    assert import_tags(library).faces == {"Anna": 1}


def test_picasa_s_file_is_read(library: Library, add_photo: Any) -> None:
    photo = add_photo("IMG_1.jpg", 1)
    corners = [round(0xFFFF * x) for x in (100 / 1600, 50 / 1200, 180 / 1600, 150 / 1200)]
    digits = "".join(f"{corner:04x}" for corner in corners).lstrip("0")
    photo.with_name(".picasa.ini").write_text(
        f"[Contacts2]\nabc=Anna;;\n[img_1.JPG]\nfaces=rect64({digits}),abc\n"
    )
    assert import_tags(library).faces == {"Anna": 1}


def test_the_same_tag_in_several_forms_counts_once(library: Library, add_photo: Any) -> None:
    photo = add_photo("a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    photo.with_name("a.xmp").write_bytes(microsoft({"Anna": "0.0625, 0.0417, 0.05, 0.0833"}))
    done = import_tags(library)
    assert (done.named, done.known) == (1, 1)


def test_of_two_names_for_a_face_the_sidecar_s_counts(library: Library, add_photo: Any) -> None:
    photo = add_photo("a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    photo.with_name("a.xmp").write_bytes(lightroom({"Anne": area_of(1)}, SIZE))
    done = import_tags(library)
    assert done.faces == {"Anne": 1}
    assert [(c.name, c.owner, c.face) for c in done.conflicts] == [("Anna", "Anne", 1)]


def test_a_face_that_is_somebody_else_s_is_never_moved(library: Library, add_photo: Any) -> None:
    add_photo("a.jpg", 1, 2, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    add_photo("b.jpg", 2)
    import_tags(library)
    add_photo("c.jpg", 1, xmp=lightroom({"Ben": area_of(1)}, SIZE))
    library.people.confirm("Anna", "3", 0)
    done = import_tags(library)
    assert [(c.photo.name, c.name, c.owner) for c in done.conflicts] == [("c.jpg", "Ben", "Anna")]
    assert "Ben" not in library.people


def test_a_refused_face_stays_refused(library: Library, add_photo: Any) -> None:
    add_photo("a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    add_photo("b.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    import_tags(library)
    library.people.reject("Anna", "2", 0)
    done = import_tags(library)
    assert (done.refused, done.known, done.named) == (1, 1, 0)
    assert confirmed(library, "Anna") == {("a.jpg", 0)}


def test_aliases_and_spellings_are_the_same_person(library: Library, add_photo: Any) -> None:
    add_photo("a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    import_tags(library)
    library.people.edit("Anna", aliases=["Annie Berg"])
    add_photo("b.jpg", 1, xmp=lightroom({"annie berg": area_of(1)}, SIZE))
    done = import_tags(library)
    assert (done.people, done.new, done.named) == (1, 0, 1)
    assert confirmed(library, "Anna") == {("a.jpg", 0), ("b.jpg", 0)}


def test_regions_without_a_face_are_reported(library: Library, add_photo: Any) -> None:
    add_photo("a.jpg", 1, xmp=lightroom({"Ben": (0.8, 0.8, 0.1, 0.1), "Anna": area_of(1)}, SIZE))
    done = import_tags(library)
    assert [(path.name, name) for path, name in done.not_found] == [("a.jpg", "Ben")]
    assert done.faces == {"Anna": 1}


def test_whole_heads_match_and_neighbours_do_not(library: Library, add_photo: Any) -> None:
    x, y, w, h = area_of(1)
    add_photo("a.jpg", 1, xmp=lightroom({"Anna": (x, y, 2 * w, 2 * h)}, SIZE))
    add_photo("b.jpg", 1, xmp=lightroom({"Ben": area_of(2)}, SIZE))
    assert import_tags(library).faces == {"Anna": 1}


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("frame", ["stored", "upright"])
@pytest.mark.parametrize("has_size", [True, False])
def test_regions_of_turned_photos_are_read_in_either_frame(
    library: Library, add_photo: Any, orientation: int, frame: str, has_size: bool
) -> None:
    x, y, w, h = area_of(3)
    area, size = Box(x - w / 2, y - h / 2, x + w / 2, y + h / 2), SIZE
    if frame == "stored":
        area = rotate_back(area, orientation)
        size = (1200, 1600) if orientation >= 5 else SIZE
    centred = ((area.x0 + area.x1) / 2, (area.y0 + area.y1) / 2, area.width, area.height)
    xmp = lightroom({"Cleo": centred}, size if has_size else None)
    add_photo("a.jpg", 1, 3, xmp=xmp, orientation=orientation)
    import_tags(library)
    assert confirmed(library, "Cleo") == {("a.jpg", 1)}


def test_regions_of_a_photo_that_was_cropped_since_are_not_used(library: Library, add_photo: Any) -> None:
    add_photo("a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, (1000, 1200)))
    done = import_tags(library)
    assert done.named == 0
    assert "cropped" in done.unreadable[0][1]


def test_what_cannot_be_read_is_named_and_the_rest_is_used(library: Library, add_photo: Any) -> None:
    photo = add_photo("a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    photo.with_name("a.xmp").write_bytes(b'<!DOCTYPE a [<!ENTITY b "schemas/regions/">]><a/>')
    bad = lightroom({"\u202eBen": area_of(2)}, SIZE)
    add_photo("b.jpg", 2, xmp=bad)
    gone = add_photo("c.jpg", 3)
    gone.unlink()
    os.mkfifo(photo.with_name("b.jpg.xmp"))
    done = import_tags(library)
    assert done.faces == {"Anna": 1}
    assert sorted(path.name for path, _ in done.unreadable) == ["a.xmp", "b.jpg", "b.jpg.xmp", "c.jpg"]
    assert not done.ok


def test_only_the_folders_asked_for_are_looked_at(library: Library, add_photo: Any, tmp_path: Path) -> None:
    add_photo("x/a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    add_photo("y/b.jpg", 2, xmp=lightroom({"Ben": area_of(2)}, SIZE))
    assert import_tags(library, [tmp_path / "photos" / "y"]).faces == {"Ben": 1}
    with pytest.raises(InvalidInputError, match="no folder"):
        import_tags(library, [tmp_path / "z"])


def test_many_faces_are_all_confirmed_and_a_dozen_are_examples(library: Library, add_photo: Any) -> None:
    for number in range(16):
        add_photo(f"{number}.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))
    assert import_tags(library).named == 16
    assert library.people.get("Anna").examples == 12
    assert len(confirmed(library, "Anna")) == 16


def test_an_interrupt_leaves_everything_as_it_was(library: Library, add_photo: Any) -> None:
    add_photo("a.jpg", 1, xmp=lightroom({"Anna": area_of(1)}, SIZE))

    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "drawing example faces":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_tags(library, progress=interrupt)
    assert len(library.people) == 0
