"""`/faces`, and the example faces that requests bring along: uploads, faces of photos, images, vectors."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Annotated, Any

import numpy as np
from fastapi import Query, Request, Response
from numpy.typing import NDArray
from pydantic import Field, StringConstraints
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from setnet.client import Answer, UploadedFaces
from setnet.errors import InvalidInputError, PhotoError
from setnet.library import Example, Library
from setnet.library.paths import display_path
from setnet.library.person_matcher import NamedPeople
from setnet.web.files import open_inside
from setnet.web.problems import Problem
from setnet.web.requests import Jpeg, State, Strict, api_router, content_type, reads, reply
from setnet.web.state import ServerState

routes = api_router("faces")
_IMAGE = {"type": "string", "format": "binary"}
_FORM = {"type": "object", "required": ["image"], "properties": {"image": _IMAGE}}
_KINDS = {"image/*": _IMAGE, "application/octet-stream": _IMAGE, "multipart/form-data": _FORM}
_CONTENT = {kind: {"schema": schema} for kind, schema in _KINDS.items()}
_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": _CONTENT}}
# Lists that may be long end at their first fault: a million faults take gigabytes to describe.
Vector = Annotated[list[float], Field(min_length=1, max_length=4096, fail_fast=True)]
_PhotoId = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]


class FaceIds(Strict):
    """Faces found by POST /faces."""

    faces: Annotated[list[str], Field(min_length=1, max_length=200)]


class FaceGroups(Answer):
    """Ids of faces, one list per person."""

    groups: list[list[str]]


class _InMemory(MultiPartParser):
    spool_max_size = 1 << 31  # nothing that was uploaded touches the disk; the body's limit is elsewhere


@routes.post("/faces", openapi_extra=_BODY, response_model=UploadedFaces)
async def find_faces(
    request: Request,
    state: State,
    preview: Annotated[bool, Query(description="Also return the upright image as base64 JPEG")] = False,
) -> Response:
    """Find the faces in an image. Their ids serve in `/search` and `/people` for half an hour.

    Send the bytes of the image as the body, or as the part `image` of a form. Nothing is written to disk.
    A face that looks like a saved person says so.
    """
    data = await _read_image(request)
    if not data:
        raise InvalidInputError("the body is empty: send the bytes of an image")
    seen = await state.pool.find(data, state.dim, preview)
    people = await state.read(NamedPeople.of)
    faces = [
        {"id": state.faces.add(example), **face.to_dict()}
        | people.identify(example.descriptor, face.quality).to_dict()
        for face, example in zip(seen.photo.faces, seen.examples(), strict=True)
    ]
    # A timer and not only the next request: faces expire even if no request follows.
    asyncio.get_running_loop().call_later(state.settings.face_lifetime, state.faces.drop_old)
    return reply(
        {
            "width": seen.photo.width,
            "height": seen.photo.height,
            "faces": faces,
            "expires_in": state.settings.face_lifetime,
            "preview": base64.b64encode(seen.preview).decode() or None,
        }
    )


async def _read_image(request: Request) -> bytes:
    kind = content_type(request)
    if kind == "multipart/form-data":
        try:
            form = await _InMemory(request.headers, request.stream(), max_files=1, max_fields=8).parse()
        except (MultiPartException, KeyError, ValueError) as error:
            raise Problem(400, f"the form cannot be read: {error}") from None
        part = form.get("image")
        if not isinstance(part, UploadFile):
            raise InvalidInputError("the form has no file called 'image'")
        return await part.read()
    if kind.startswith("image/") or kind == "application/octet-stream":
        return await request.body()
    raise Problem(415, "send an image: 'Content-Type: image/jpeg' (or any image/*), or a form with 'image'")


@routes.post("/faces/groups")
@reads
def group_faces(library: Library, query: FaceIds, state: State) -> FaceGroups:
    """Group faces that look like the same person: one list of ids per person."""
    faces = {face_id: state.faces.get(face_id).descriptor for face_id in query.faces}
    threshold = library._matchers.threshold
    groups: list[list[str]] = []
    for face_id, descriptor in faces.items():
        alike = (g for g in groups if max(float(faces[i] @ descriptor) for i in g) >= threshold)
        if (group := next(alike, None)) is None:
            groups.append([face_id])
        else:
            group.append(face_id)
    return FaceGroups(groups=groups)


@routes.get("/faces/{face_id}/picture", response_class=Jpeg)
async def face_picture(face_id: str, state: State) -> Response:
    """Return a small picture of a face found in an upload."""
    return Jpeg(state.faces.get(face_id).picture)


class FaceReference(Strict):
    """A face of a photo in the library."""

    photo: _PhotoId
    face: Annotated[int, Field(ge=0, le=100_000, description="Its number in the photo, from 0")]


class Examples(Strict):
    """Where the example faces of a person come from; several sources may be given together."""

    faces: Annotated[list[str], Field(max_length=32, description="Face ids of POST /faces")] = []
    photo_faces: Annotated[list[FaceReference], Field(max_length=32)] = []
    images: Annotated[
        list[str], Field(max_length=4, description="Base64 of images; the largest face is taken")
    ] = []
    descriptors: Annotated[
        list[Vector], Field(max_length=100, fail_fast=True, description="Vectors as they are")
    ] = []


async def uploaded_examples(state: ServerState, examples: Examples) -> list[Example]:
    """Return the faces of uploads that a request refers to or brings along."""
    found = [state.faces.get(face_id) for face_id in examples.faces]
    for number, text in enumerate(examples.images, 1):
        data = await state.parsing.run(image_bytes, text, number)
        seen = await state.pool.find(data, state.dim)
        if not seen.photo.faces:
            raise PhotoError(f"no face found in image {number}: use one where the face is larger or sharper")
        areas = [face.box.width * face.box.height for face in seen.photo.faces]
        found.append(seen.examples()[areas.index(max(areas))])
    return found


def image_bytes(text: str, number: int) -> bytes:
    """Return an image that a request holds as base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInputError(f"image {number} is not valid base64") from None


def photo_examples(state: ServerState, faces: list[FaceReference]) -> list[Example]:
    """Return faces of photos in the library with small pictures of them; for calls in `state.drawing`."""
    with state.library.reading() as library:
        return [_photo_example(state, library, face) for face in faces]


def photo_descriptors(library: Library, photo_id: str) -> NDArray[np.float32]:
    """Return the descriptors of a photo's faces; an unknown photo is answered with 404."""
    try:
        return library.photos.descriptors(photo_id)
    except InvalidInputError:
        raise Problem(404, f"no photo {photo_id} in this library") from None


def face_descriptor(library: Library, face: FaceReference) -> NDArray[np.float32]:
    """Return the descriptor of a face of a photo; one that is not there is answered with 404."""
    descriptors = photo_descriptors(library, face.photo)
    if face.face >= len(descriptors):
        raise Problem(404, f"photo {face.photo} has {len(descriptors)} faces, none with number {face.face}")
    found: NDArray[np.float32] = descriptors[face.face]
    return found


def _photo_example(state: ServerState, library: Library, face: FaceReference) -> Example:
    descriptor = face_descriptor(library, face)
    photo = library.photos.get(face.photo)
    box = photo.faces[face.face].box
    try:
        with open_inside(library, photo).file as file:
            picture = state.drawing.face_picture(file, box)
    except (PhotoError, Problem):  # gone, or not ours to show; the person can be kept all the same
        picture = None
    return Example(descriptor, display_path(photo.path), box, picture, content=photo.stored_hash)


def check_vector(values: list[float], dim: int, number: int) -> NDArray[np.float32]:
    """Return a descriptor that a request holds as an array; one that cannot be compared is an error."""
    with np.errstate(over="ignore"):
        vector = np.asarray(values, np.float32)
    if vector.shape != (dim,) or not np.isfinite(vector).all() or not vector.any():
        raise InvalidInputError(
            f"descriptor {number}: {dim} finite numbers, not all zero, are expected; got {len(values)}"
        )
    return vector
