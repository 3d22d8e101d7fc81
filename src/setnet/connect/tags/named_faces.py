"""Which faces of a library's photos are surely a saved person's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from setnet.faces import Box
from setnet.library import SAME_FACE, Library, LibraryPhoto, NamedPeople

FaceNames = dict[int, str]


def photos_with_names(
    library: Library, only: Collection[str] = ()
) -> Iterator[tuple[LibraryPhoto, FaceNames]]:
    """Yield every photo with the names of its faces that are confirmed, examples or sure matches.

    A face is one person's, the one it exceeds the threshold of by most; `only` says whose names are wanted.
    """
    people = NamedPeople.of(library)
    examples: defaultdict[str, list[tuple[Box, str]]] = defaultdict(list)
    for person in library.people:
        for example in library.people.examples(person):
            if example.content is not None and example.box is not None:
                examples[example.content.hex()].append((example.box, person.name))
    for photo in library.catalog.all_photos():
        if photo.start is not None:
            continue  # a shot: regions are for pictures
        names: FaceNames = {}
        vectors = library.descriptors(photo.id) if photo.faces else ()
        for number, (face, vector) in enumerate(zip(photo.faces, vectors, strict=True)):
            known = [name for box, name in examples[photo.content] if box.overlap(face.box) >= SAME_FACE]
            identity = people.identify(vector, face.quality, (photo.id, number))
            name = known[0] if known else identity.name if identity.sure else ""
            if name and (not only or name in only):
                names[number] = name
        yield photo, names
