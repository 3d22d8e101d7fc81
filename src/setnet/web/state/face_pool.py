"""Faces in uploaded images."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.web.server_settings import WebSettings
from setnet.web.state.image_pool import ImagePool, jpeg_in
from setnet.workers import Message, as_bytes

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

__all__ = ["FacePool", "SeenFace", "SeenImage"]

_LONGEST_SIDE = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class SeenFace:
    """A face in an uploaded image; `picture` is a small JPEG of it."""

    box: tuple[float, float, float, float]
    score: float
    quality: Mapping[str, float]
    descriptor: NDArray[np.float32]
    picture: bytes


@dataclass(frozen=True, slots=True, eq=False)
class SeenImage:
    """An uploaded image's size and faces; `preview` is a base64 JPEG of it, or empty."""

    width: int
    height: int
    faces: tuple[SeenFace, ...]
    preview: str


class FacePool(ImagePool):
    """The processes that find faces."""

    def __init__(self, faces: FaceSettings, settings: WebSettings) -> None:
        self._descriptor = faces.descriptor
        super().__init__(
            "face finding",
            replace(faces, max_pixels=min(faces.max_pixels, settings.max_pixels)),
            workers=settings.face_workers,
            queue=settings.face_queue,
            seconds=settings.face_seconds,
            finds_faces=True,
        )

    @cached_property
    def _dim(self) -> int:
        from setnet.faces import model_entry

        return model_entry(self._descriptor, "descriptor").dim or 0

    async def find(self, image: bytes, preview: bool = False) -> SeenImage:
        """Return the faces of an image; a full queue is refused at once."""
        task = Message("faces", {"preview": preview}, {"image": as_bytes(image)})
        return await self.run(self.process, task, self._seen)

    def _seen(self, reply: Message) -> SeenImage:
        from setnet.library import faces_from

        faces = tuple(
            SeenFace(
                face.box, face.score, asdict(face.quality), face.descriptor, jpeg_in(reply, f"picture {n}")
            )
            for n, face in enumerate(faces_from(reply, self._dim))
        )
        return SeenImage(
            reply.integer("width", 1, _LONGEST_SIDE),
            reply.integer("height", 1, _LONGEST_SIDE),
            faces,
            base64.b64encode(jpeg_in(reply, "preview")).decode() if "preview" in reply.arrays else "",
        )
