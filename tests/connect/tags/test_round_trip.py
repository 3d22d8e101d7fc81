"""Names that go out to sidecars and come back, on photos in which faces are really found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PIL import Image

from setnet.connect import import_tags, write_tags
from setnet.library import Library


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
    library.add_person("Anna", [f"{upright}#1"])
    assert dict(write_tags(library).regions) == {"Anna": 2}
    library.people.remove("Anna")
    done = import_tags(library)
    assert (done.named, done.not_found, done.conflicts, done.unreadable) == (2, [], [], [])
    faces = {
        (library.photo(verdict.photo_id or "").path, verdict.face)
        for verdict in library.people.verdicts("Anna")
    }
    assert faces == {(upright, 0), (turned, 1)}
