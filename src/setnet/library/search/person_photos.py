"""All photos of a saved person by date: what is surely theirs, what was confirmed, and their groups."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from setnet.library.photos import LibraryPhoto, PathText
from setnet.library.search.query import PhotoQuery
from setnet.library.search.query_matching import QueryMatching
from setnet.library.search.query_person import QueryPerson, judged_faces

if TYPE_CHECKING:
    from setnet.library.library import Library


class PersonPhoto(NamedTuple):
    """A photo with a person in it; `sure` says that the face is surely theirs or was confirmed."""

    photo: LibraryPhoto
    face: int
    sure: bool

    def to_dict(self, path_text: PathText = os.fsdecode) -> dict[str, Any]:
        """Return the photo as values that JSON can hold."""
        return self.photo.to_dict(path_text) | {"face": self.face, "sure": self.sure}


@dataclass(frozen=True, slots=True)
class PersonPhotos:
    """Some of the photos of a person, the latest taken first, and how many there are in all."""

    photos: tuple[PersonPhoto, ...]
    total: int


def photos_of_person(
    library: Library, name: str, in_groups: Iterable[tuple[str, int]], offset: int, limit: int | None
) -> PersonPhotos:
    """Return photos with a face that is surely the person's, was confirmed, or is in a group of theirs.

    Faces that were refused are left out. Photos of no known time come last.
    """
    confirmed, refused = judged_faces(library.people, name)
    found = {photo: (face, True) for photo, face in sorted(confirmed, reverse=True)}
    if library.people.get(name).examples:
        found.update(_sure(library, library.person(name)))
    for photo, face in in_groups:
        if (photo, face) not in refused:
            found.setdefault(photo, (face, False))
    order = library.catalog.newest_first(found)
    page = order[offset : None if limit is None else offset + limit]
    photos = library.catalog.photos(page)
    return PersonPhotos(tuple(PersonPhoto(photos[i], *found[i]) for i in page if i in photos), len(order))


def _sure(library: Library, person: QueryPerson) -> Iterator[tuple[str, tuple[int, bool]]]:
    query = PhotoQuery([person], at_least=1, sure=True)
    matching = QueryMatching(library.matching, query, [person], [])
    everything = max(1, len(library.set_index))
    items = library.set_index.ranked(matching.vectors, matching.options(everything, None, 1, None))
    for photo, face in zip(items.ids, items.elements[:, 0].tolist(), strict=True):
        yield photo, (face, True)
