"""`POST /photos`: photos that another program sends, as a file to be kept or as faces that it described."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from fastapi import Response
from pydantic import Field, model_validator

from setnet.addresses import external_address
from setnet.client import AddedPhotos
from setnet.durable import replace_file
from setnet.errors import InvalidInputError, PhotoError
from setnet.faces.photo import format_by_beginning
from setnet.library import Library, StoredFace
from setnet.library.creation import remember_folders
from setnet.library.paths import as_path, display_path, resolve_path
from setnet.library.photo_reader import PhotoResult
from setnet.library.photos import content_hash, taken_number
from setnet.web.faces import Vector, check_vector, image_bytes
from setnet.web.requests import State, Strict, api_router, reply
from setnet.web.state import ServerState

routes = api_router("photos")
_LARGEST_SIDE = 1 << 30
_SUFFIXES = {
    "JPEG": "jpg",
    "PNG": "png",
    "GIF": "gif",
    "WebP": "webp",
    "TIFF": "tif",
    "AVIF": "avif",
    "HEIC": "heic",
}


class SentFace(Strict):
    """A face that another program described."""

    box: Annotated[
        tuple[float, float, float, float], Field(description="x0, y0, x1, y1 in pixels of the upright photo")
    ]
    descriptor: Annotated[Vector, Field(description="By the library's model; any length, it is normalised")]
    score: Annotated[float, Field(ge=0, le=1, description="The detector's")] = 1.0

    @model_validator(mode="after")
    def _has_size(self) -> Self:
        x0, y0, x1, y1 = self.box
        if not (abs(np.array(self.box)) <= _LARGEST_SIDE).all() or x1 <= x0 or y1 <= y0:
            raise ValueError("box: x0 < x1 and y0 < y1 are expected")
        return self

    def to_stored(self, number: int) -> StoredFace:
        """Return the face as it is stored: without landmarks, and of a quality that its size tells."""
        x0, y0, x1, y1 = self.box
        quality = f'{{"size": {sqrt((x1 - x0) * (y1 - y0)):.4f}, "score": {self.score:.4f}}}'
        return StoredFace(number, x0, y0, x1, y1, self.score, bytes(40), quality)


class SentPhoto(Strict):
    """A photo: an `image` to be kept, or its `faces` with the `external_id` of a photo kept elsewhere."""

    external_id: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    taken: Annotated[datetime | None, Field(description="Of an image, where the camera tells no time")] = None
    image: Annotated[str | None, Field(description="Base64 of the file")] = None
    faces: Annotated[list[SentFace] | None, Field(max_length=200)] = None
    width: Annotated[int | None, Field(ge=1, le=_LARGEST_SIDE, description="With faces: of the photo")] = None
    height: Annotated[int | None, Field(ge=1, le=_LARGEST_SIDE)] = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        sent = self.faces, self.external_id, self.width, self.height
        if self.image is None and any(one is None for one in sent):
            raise ValueError("send an image, or faces with external_id, width and height")
        if self.image is not None and any(one is not None for one in (self.faces, self.width, self.height)):
            raise ValueError("setnet finds the faces of an image itself: send it without faces and size")
        if not (self.external_id or "").isprintable():
            raise ValueError("external_id: printable characters are expected")
        return self


class SentPhotos(Strict):
    """Photos to add; faces that are sent again under their external id replace those sent before."""

    photos: Annotated[list[SentPhoto], Field(min_length=1, max_length=200)]
    descriptor: Annotated[
        str | None,
        Field(description="With faces: the model of their descriptors, which must be the library's"),
    ] = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A photo that can be stored, with the file to keep."""

    external_id: str | None
    result: PhotoResult
    file: bytes = b""


@routes.post("/photos", response_model=AddedPhotos)
async def add_photos(query: SentPhotos, state: State) -> Response:
    """Add photos: files, which the server keeps in its folder of uploads, or faces described elsewhere.

    The answer has the photo or an `error` for each, in their order. The next index run groups the new faces.
    """
    ready = [await _prepare(state, sent, query.descriptor) for sent in query.photos]
    return reply({"photos": await state.write(partial(_store, ready, state.settings.uploads))})


async def _prepare(state: ServerState, sent: SentPhoto, descriptor: str | None) -> _Ready | str:
    """Return what can be stored, or why it cannot."""
    try:
        if sent.image is None:
            return _Ready(sent.external_id, _describe(state, sent, descriptor))
        data = await state.parsing.run(image_bytes, sent.image, 1)
        return _Ready(sent.external_id, await _find(state, sent, data), data)
    except (InvalidInputError, PhotoError) as error:
        return str(error).removeprefix("the given image: ")


def _describe(state: ServerState, sent: SentPhoto, descriptor: str | None) -> PhotoResult:
    faces, external_id = sent.faces or [], sent.external_id or ""
    known = state.with_library(lambda library: library.settings.descriptor)
    if faces and descriptor != known:
        raise InvalidInputError(f"the library compares descriptors of {known!r}, not of {descriptor!r}")
    vectors = [check_vector(face.descriptor, state.dim, number) for number, face in enumerate(faces, 1)]
    return PhotoResult(
        os.fsencode(external_address(external_id)),
        hash=content_hash(b"external " + external_id.encode()),  # corrections of its faces stay with the id
        taken=taken_number(sent.taken),
        width=sent.width or 1,
        height=sent.height or 1,
        faces=tuple(face.to_stored(number) for number, face in enumerate(faces)),
        descriptors=np.stack([vector / np.linalg.norm(vector) for vector in vectors]) if vectors else None,
    )


async def _find(state: ServerState, sent: SentPhoto, data: bytes) -> PhotoResult:
    uploads, suffix = state.settings.uploads, _SUFFIXES.get(format_by_beginning(data[:12]) or "")
    if uploads is None:
        raise InvalidInputError(
            "this server keeps no photos: start it with --uploads FOLDER, or send faces instead of an image"
        )
    if suffix is None:
        raise InvalidInputError(f"an image in one of these formats is expected: {', '.join(_SUFFIXES)}")
    seen = await state.pool.find(data, state.dim)
    path = resolve_path(uploads / f"{seen.photo.hash.hex()}.{suffix}")
    return replace(seen.photo, path=path, taken=seen.photo.taken or taken_number(sent.taken))


def _store(ready: Sequence[_Ready | str], uploads: Path | None, library: Library) -> list[dict[str, Any]]:
    """Store what is ready, and return an answer for each."""
    ready = [one if isinstance(one, str) else _other_owner(library, one) or one for one in ready]
    good = {one.result.path: one for one in ready if not isinstance(one, str)}
    results = [_keep(one) if one.file else one.result for one in good.values()]
    if uploads is not None:
        remember_folders(library._database, [resolve_path(uploads)])
    ids = dict(zip(good, library.photos.add(results), strict=True))
    for path, one in good.items():
        if one.external_id is not None:
            library.photos.set_external_id(ids[path], one.external_id)
    photos = library.photos.get_many(ids.values())
    return [
        {"photo": None, "error": one}
        if isinstance(one, str)
        else {"photo": photos[ids[one.result.path]].to_dict(display_path), "error": None}
        for one in ready
    ]


def _other_owner(library: Library, one: _Ready) -> str | None:
    """Return what is wrong if the external id is that of another photo."""
    owner = library.photos.with_external_id(one.external_id) if one.external_id else None
    if owner is None or owner.stored_path == one.result.path:
        return None
    return f"the external id {one.external_id!r} is that of photo {owner.id}: forget that one first"


def _keep(one: _Ready) -> PhotoResult:
    """Write the file, and return the photo as the next index run finds it."""
    path = as_path(one.result.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        replace_file(path, one.file)
    info = path.stat()
    return replace(one.result, size=info.st_size, mtime_ns=info.st_mtime_ns)
