"""Faces of photos in the library, as a user names them: `group.jpg#3` is the third from the left."""

from __future__ import annotations

from setnet.errors import InvalidInputError, PhotoError
from setnet.library.paths import display_path, resolve_path
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.photos import LibraryPhoto
from setnet.library.pictures import face_picture, open_picture
from setnet.library.search.query_person import split_number


def face_at(text: str, catalog: PhotoCatalog) -> tuple[str, int]:
    """Return the photo's id and the number of the face, from 0; faces are kept from left to right.

    A photo with one face needs no number.
    """
    path, number = split_number(text)
    photo = catalog.photo_at(resolve_path(path))
    faces = len(photo.faces)
    if number is None and faces > 1:
        raise InvalidInputError(
            f"{display_path(photo.path)} has {faces} faces: say which, as in "
            f"{display_path(photo.path.name)}#1 for the first from the left "
            "(`setnet faces PHOTO --out drawn.png` shows the numbers)"
        )
    if not 1 <= (number or 1) <= faces:
        raise InvalidInputError(
            f"{display_path(photo.path)} has {faces} face(s): the number after # is 1..{faces}, from the left"
        )
    return photo.id, (number or 1) - 1


def picture_of(photo: LibraryPhoto, face: int) -> bytes | None:
    """Return a small JPEG of a face; None where the photo's file cannot be read."""
    if not 0 <= face < len(photo.faces):
        return None
    try:
        opened = open_picture(photo, face)
        return face_picture(opened.pixels, opened.in_pixels(photo.faces[face].box))
    except PhotoError:  # gone, or on a disk that is away; what was said holds all the same
        return None
