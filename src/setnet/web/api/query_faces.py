"""Example faces that a request refers to or brings along, and the people of a query made of them."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, PhotoError
from setnet.library import Example, Library, QueryPerson, display_path
from setnet.web.api.bodies.requests import Examples, FaceReference, PersonQuery
from setnet.web.api.dependencies import known_group
from setnet.web.server.problems import Problem, not_found
from setnet.web.state.photo_files import open_inside

if TYPE_CHECKING:
    from setnet.web.state.server_state import ServerState


async def uploads_of(state: ServerState, examples: Examples) -> list[Example]:
    """Return the faces of uploads that a request refers to or brings along."""
    found = [state.faces.get(face_id) for face_id in examples.faces]
    for number, text in enumerate(examples.images, 1):
        data = await state.parsing.run(_image_bytes, text, number)
        seen = await state.pool.find(data, state.dim)
        if not seen.faces:
            raise PhotoError(f"no face found in image {number}: use one where the face is larger or sharper")
        areas = [face.box.width * face.box.height for face in seen.faces]
        found.append(seen.examples()[areas.index(max(areas))])
    return found


def _image_bytes(text: str, number: int) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInputError(f"image {number} is not valid base64") from None


def person_of(person: PersonQuery, number: int, uploads: list[Example], library: Library) -> QueryPerson:
    """Return a person of a query with all their examples."""
    parts: list[NDArray[np.float32]] = [face.descriptor[None] for face in uploads]
    name, known = person.name, list[QueryPerson]()
    if person.saved is not None:
        if person.saved not in library.people:
            raise not_found(f"nobody saved is called {person.saved!r}")
        known.append(library.person(person.saved))
    if person.group is not None:
        known_group(library, person.group)
        known.append(library.group_person(person.group))
    for one in known:
        parts.append(one.descriptors)
        name = name or one.name
    parts += [descriptor_of(library, face)[None] for face in person.photo_faces]
    parts += [_vector(vector, library.dim, n)[None] for n, vector in enumerate(person.descriptors, 1)]
    if not parts:
        raise InvalidInputError(
            f"person {number} has no example: give saved, group, faces, photo_faces, images or descriptors"
        )
    return QueryPerson(
        name or f"person {number}",
        np.concatenate(parts),
        confirmed=frozenset[tuple[str, int]]().union(*(one.confirmed for one in known)),
        refused=frozenset[tuple[str, int]]().union(*(one.refused for one in known)),
    )


def examples_of(
    examples: Examples, uploads: list[Example], photo_examples: list[Example], library: Library
) -> list[Example]:
    """Return the example faces to save of a person."""
    return [
        *uploads,
        *photo_examples,
        *(Example(_vector(v, library.dim, n)) for n, v in enumerate(examples.descriptors, 1)),
    ]


def photo_examples(state: ServerState, faces: list[FaceReference]) -> list[Example]:
    """Return faces of photos in the library with small pictures of them; for calls in `state.drawing`."""
    with state.library.reading() as library:
        return [_example(state, library, face) for face in faces]


def descriptors_of(library: Library, photo_id: str) -> NDArray[np.float32]:
    """Return the descriptors of a photo's faces; an unknown photo is answered with 404."""
    try:
        return library.descriptors(photo_id)
    except InvalidInputError:
        raise not_found(f"no photo {photo_id} in this library") from None


def descriptor_of(library: Library, face: FaceReference) -> NDArray[np.float32]:
    """Return the descriptor of a face of a photo; one that is not there is answered with 404."""
    descriptors = descriptors_of(library, face.photo)
    if face.face >= len(descriptors):
        raise not_found(f"photo {face.photo} has {len(descriptors)} faces, none with number {face.face}")
    found: NDArray[np.float32] = descriptors[face.face]
    return found


def _example(state: ServerState, library: Library, face: FaceReference) -> Example:
    descriptor = descriptor_of(library, face)
    photo = library.photo(face.photo)
    box = photo.faces[face.face].box
    try:
        with open_inside(library, photo).file as file:
            picture = state.drawing.face_picture(file, box)
    except (PhotoError, Problem):  # gone, or not ours to show; the person can be kept all the same
        picture = None
    return Example(descriptor, display_path(photo.path), box, picture, content=photo.stored_hash)


def _vector(values: list[float], dim: int, number: int) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        vector = np.asarray(values, np.float32)
    if vector.shape != (dim,) or not np.isfinite(vector).all() or not vector.any():
        raise InvalidInputError(
            f"descriptor {number}: {dim} finite numbers, not all zero, are expected; got {len(values)}"
        )
    return vector
