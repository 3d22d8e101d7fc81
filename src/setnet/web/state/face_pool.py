"""Faces in uploaded images."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.web.settings import WebSettings
from setnet.web.state.image_pool import ImagePool

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

__all__ = ["FacePool", "SeenFace", "SeenImage"]


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
        super().__init__(
            "face finding",
            replace(faces, max_pixels=min(faces.max_pixels, settings.max_pixels)),
            workers=settings.face_workers,
            queue=settings.face_queue,
            seconds=settings.face_seconds,
            finds_faces=True,
        )

    async def find(self, image: bytes, preview: bool = False) -> SeenImage:
        """Return the faces of an image; a full queue is refused at once."""
        return _image(await self.run(self.ask, image, do="faces", preview=preview))


def _image(answer: Mapping[str, Any]) -> SeenImage:
    faces = tuple(
        SeenFace(
            box=tuple(face["box"]),
            score=face["score"],
            quality=face["quality"],
            descriptor=np.frombuffer(base64.b64decode(face["descriptor"]), "<f4").astype(np.float32),
            picture=base64.b64decode(face["picture"]),
        )
        for face in answer["faces"]
    )
    return SeenImage(answer["width"], answer["height"], faces, answer["preview"])
