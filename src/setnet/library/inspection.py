"""The faces found in one photo, as a record and as a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.library.paths import default_library
from setnet.library.person_matcher import Identity, NamedPeople
from setnet.library.sheets import Card, Mark, write_sheet
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import Face, FaceSettings, Photo


@dataclass(frozen=True, slots=True, eq=False)
class SeenPhoto:
    """A photo's faces from left to right, and the identity of each."""

    path: str
    photo: Photo
    faces: tuple[Face, ...]
    names: tuple[Identity, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the photo and its faces as values that JSON can hold."""
        return {
            "photo": str(Path(self.path).absolute()),
            "width": self.photo.width,
            "height": self.photo.height,
            "note": self.photo.note,
            "faces": [
                {
                    "number": number,
                    **face.to_dict(),
                    "landmarks": np.asarray(face.landmarks, np.float64).round(1).tolist(),
                    **identity.to_dict(),
                }
                for number, (face, identity) in enumerate(zip(self.faces, self.names, strict=True), 1)
            ],
        }


def inspect_photo(photo: str, library: Path | None, **chosen: Any) -> SeenPhoto:
    """Find the faces of a photo with the settings of the library, if there is one, changed by `chosen`."""
    from setnet.faces import extract_faces, open_photo

    settings, people = _settings(library, chosen)
    opened = open_photo(Path(photo).expanduser(), max_pixels=settings.max_pixels)
    faces = tuple(extract_faces(opened, settings))
    names = tuple(people.identify(face.descriptor, asdict(face.quality)) for face in faces)
    return SeenPhoto(photo, opened, faces, names)


def _settings(library: Path | None, chosen: dict[str, Any]) -> tuple[FaceSettings, NamedPeople]:
    from setnet.faces import FaceSettings
    from setnet.library.library import Library

    place = library or default_library()
    if library is None and not (place / "library.db").is_file():
        return FaceSettings(**chosen), NamedPeople.nobody()
    with Library.open(place) as opened:
        own = opened.settings
        same_model = chosen.get("descriptor", own.descriptor) == own.descriptor
        people = NamedPeople.of(opened) if same_model else NamedPeople.nobody()
        return FaceSettings.from_dict({**own.to_dict(), **chosen}), people


def face_sheet(seen: SeenPhoto, path: Path) -> None:
    """Write the photo as a page of HTML, its faces numbered, and named where they are known."""
    labels = [
        f"{number}  {identity.label} {identity.similarity:.2f}" if identity.name else str(number)
        for number, identity in enumerate(seen.names, 1)
    ]
    marks = [
        Mark(face.box, label, identity.sure or not identity.name)
        for face, label, identity in zip(seen.faces, labels, seen.names, strict=True)
    ]
    card = Card(lambda: seen.photo, marks=marks)
    write_sheet(path, Path(seen.path).name, pluralise(len(marks), "face"), [("", [card])], 1200)
