"""`/faces`: an image becomes faces that can be searched for."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from setnet.client import FaceGroupsAnswer, FacesAnswer
from setnet.errors import InvalidInputError
from setnet.web.problems import Problem
from setnet.web.requests import Jpeg, State, Strict, content_type, json_body, json_schema

routes = APIRouter(tags=["faces"])
_IMAGE = {"type": "string", "format": "binary"}
_FORM = {"type": "object", "required": ["image"], "properties": {"image": _IMAGE}}
_KINDS = {"image/*": _IMAGE, "application/octet-stream": _IMAGE, "multipart/form-data": _FORM}
_CONTENT = {kind: {"schema": schema} for kind, schema in _KINDS.items()}
_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": _CONTENT}}


class FaceIds(Strict):
    """Faces found by POST /faces."""

    faces: Annotated[list[str], Field(min_length=1, max_length=200)]


class _InMemory(MultiPartParser):
    spool_max_size = 1 << 31  # nothing that was uploaded touches the disk; the body's limit is elsewhere


@routes.post("/faces", openapi_extra=_BODY, response_model=FacesAnswer)
async def find_faces(
    request: Request,
    state: State,
    preview: Annotated[bool, Query(description="Also return the upright image as base64 JPEG")] = False,
) -> Response:
    """Find the faces in an image. Their ids serve in `/search` and `/people` for half an hour.

    Send the bytes of the image as the body, or as the part `image` of a form. Nothing is written to disk.
    """
    data = await _read_image(request)
    if not data:
        raise InvalidInputError("the body is empty: send the bytes of an image")
    seen = await state.pool.find(data, state.dim, preview)
    faces = [
        {"id": state.faces.add(example), **face.to_dict()}
        for face, example in zip(seen.faces, seen.examples(), strict=True)
    ]
    # A timer and not only the next request: faces expire even if no request follows.
    asyncio.get_running_loop().call_later(state.settings.face_lifetime, state.faces.drop_old)
    return JSONResponse(
        {
            "width": seen.width,
            "height": seen.height,
            "faces": faces,
            "expires_in": state.settings.face_lifetime,
            "preview": b64encode(seen.preview).decode() or None,
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


@routes.post("/faces/groups", response_model=FaceGroupsAnswer, openapi_extra=json_schema(FaceIds))
async def group_faces(query: Annotated[FaceIds, json_body(FaceIds)], state: State) -> Response:
    """Group faces that look like the same person: one list of ids per person."""
    faces = {face_id: state.faces.get(face_id).descriptor for face_id in query.faces}
    with state.library.reading() as library:
        threshold = library.matching.threshold
    groups: list[list[str]] = []
    for face_id, descriptor in faces.items():
        alike = (g for g in groups if max(float(faces[i] @ descriptor) for i in g) >= threshold)
        group = next(alike, [])
        if not group:
            groups.append(group)
        group.append(face_id)
    return JSONResponse({"groups": groups})


@routes.get("/faces/{face_id}/picture", response_class=Jpeg)
async def face_picture(face_id: str, state: State) -> Response:
    """Return a small picture of a face found in an upload."""
    return Jpeg(state.faces.get(face_id).picture)
