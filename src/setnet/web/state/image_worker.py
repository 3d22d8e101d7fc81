"""The process that opens strangers' images: whatever happens to it does not happen to the server."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.errors import PhotoError, SetNetError

if TYPE_CHECKING:
    from setnet.faces import FaceSettings, Photo

__all__ = ["READY", "answer_images"]

READY = b"ready"
_MOST_MEMORY = 8 << 30  # address space: models and threads take up to 3 GB of it, little of that is real
_LARGEST_FILE = 512 << 20
_PREVIEW_SIDE = 1280
_MOST_FACES = 200


def answer_images(pipe: Connection, settings: FaceSettings, finds_faces: bool) -> None:
    """Answer images from the pipe until it closes; the body of the process.

    A request is JSON, followed by the image: its bytes, or the handle of its open file. Answers are JSON:
    the server never unpickles what a process said that a hostile image may have taken.
    """
    _limit_memory()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        if finds_faces:
            _warm_up(settings)
        pipe.send_bytes(READY)
        while True:
            asked = json.loads(pipe.recv_bytes())
            image = recv_handle(pipe) if asked["is_file"] else pipe.recv_bytes()
            pipe.send_bytes(json.dumps(_answer(asked, image, settings)).encode())


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # where memory runs out, this process goes before the server
        Path("/proc/self/oom_score_adj").write_text("1000")


def _warm_up(settings: FaceSettings) -> None:
    from setnet.faces import faces_of

    with suppress(SetNetError):  # a missing model is told with the first image
        faces_of(np.zeros((64, 64, 3), np.uint8), settings)


def _answer(asked: Mapping[str, Any], image: bytes | int, settings: FaceSettings) -> dict[str, Any]:
    from setnet.errors import ModelError
    from setnet.faces import open_photo

    try:
        data = image if isinstance(image, bytes) else _contents(image)
        return _DOING[asked["do"]](open_photo(data, max_pixels=settings.max_pixels), asked, settings)
    except ModelError as error:
        return {"error": str(error), "kind": "model"}
    except SetNetError as error:
        return {"error": str(error), "kind": "photo"}
    except MemoryError:
        return {"error": "the given image: needs more memory than one image may", "kind": "photo"}
    except Exception as error:  # decoders fail in their own ways; the image is what is wrong
        return {"error": f"the given image: cannot be used ({type(error).__name__})", "kind": "photo"}


def _contents(handle: int) -> bytes:
    with os.fdopen(handle, "rb") as file:
        data = file.read(_LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise PhotoError(f"the given image: larger than {_LARGEST_FILE >> 20} MB")
    return data


def _faces(photo: Photo, asked: Mapping[str, Any], settings: FaceSettings) -> dict[str, Any]:
    from setnet.faces import faces_of
    from setnet.library import face_picture, jpeg, thumbnail

    found = faces_of(photo, settings)[:_MOST_FACES]
    return {
        "width": photo.width,
        "height": photo.height,
        "preview": _text(jpeg(thumbnail(photo.pixels, _PREVIEW_SIDE)) if asked["preview"] else b""),
        "faces": [
            {
                "box": [face.box.x0, face.box.y0, face.box.x1, face.box.y1],
                "score": float(face.score),
                "quality": {k: round(float(v), 4) for k, v in asdict(face.quality).items()},
                "descriptor": _text(np.asarray(face.descriptor, "<f4").tobytes()),
                "picture": _text(face_picture(photo.pixels, face.box)),
            }
            for face in found
        ],
    }


def _thumbnail(photo: Photo, asked: Mapping[str, Any], _: FaceSettings) -> dict[str, Any]:
    from setnet.library import jpeg, thumbnail

    return {"picture": _text(jpeg(thumbnail(photo.pixels, asked["side"])))}


def _face_picture(photo: Photo, asked: Mapping[str, Any], _: FaceSettings) -> dict[str, Any]:
    from setnet.faces import Box
    from setnet.library import face_picture

    return {"picture": _text(face_picture(photo.pixels, Box(*asked["box"])))}


_DOING = {"faces": _faces, "thumbnail": _thumbnail, "face picture": _face_picture}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


if __name__ == "__main__":
    from setnet.faces import FaceSettings

    answer_images(
        Connection(int(sys.argv[1])),
        FaceSettings.from_dict(json.loads(sys.argv[2])),
        finds_faces=sys.argv[3] == "faces",
    )
