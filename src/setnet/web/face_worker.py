"""The process that opens strangers' images: whatever happens to it does not happen to the server."""

from __future__ import annotations

import base64
import json
import sys
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.errors import SetNetError

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

__all__ = ["READY", "answer_images"]

READY = b"ready"
_MOST_MEMORY = 8 << 30  # address space: models and threads take up to 3 GB of it, little of that is real
_PREVIEW_SIDE = 1280
_MOST_FACES = 200


def answer_images(pipe: Connection, settings: FaceSettings) -> None:
    """Answer images from the pipe until it closes; the body of the process.

    Answers are JSON: the server never unpickles what a process said that a hostile image may have taken.
    """
    _limit_memory()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _warm_up(settings)
        pipe.send_bytes(READY)
        while True:
            preview = pipe.recv_bytes() == b"preview"
            pipe.send_bytes(json.dumps(_answer(pipe.recv_bytes(), preview, settings)).encode())


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _warm_up(settings: FaceSettings) -> None:
    from setnet.faces import faces_of

    with suppress(SetNetError):  # a missing model is told with the first image
        faces_of(np.zeros((64, 64, 3), np.uint8), settings)


def _answer(data: bytes, preview: bool, settings: FaceSettings) -> dict[str, Any]:
    from setnet.errors import ModelError
    from setnet.faces import faces_of, open_photo
    from setnet.library.pictures import face_picture, jpeg, thumbnail

    try:
        photo = open_photo(data, max_pixels=settings.max_pixels)
        found = faces_of(photo, settings)[:_MOST_FACES]
        pictures = [face_picture(photo.pixels, face.box) for face in found]
        small = jpeg(thumbnail(photo.pixels, _PREVIEW_SIDE)) if preview else b""
    except ModelError as error:
        return {"error": str(error), "kind": "model"}
    except SetNetError as error:
        return {"error": str(error), "kind": "photo"}
    except MemoryError:
        return {"error": "the given image: needs more memory than one image may", "kind": "photo"}
    except Exception as error:  # decoders fail in their own ways; the image is what is wrong
        return {"error": f"the given image: cannot be used ({type(error).__name__})", "kind": "photo"}
    return {
        "width": photo.width,
        "height": photo.height,
        "preview": _text(small),
        "faces": [
            {
                "box": [face.box.x0, face.box.y0, face.box.x1, face.box.y1],
                "score": float(face.score),
                "quality": {k: round(float(v), 4) for k, v in asdict(face.quality).items()},
                "descriptor": _text(np.asarray(face.descriptor, "<f4").tobytes()),
                "picture": _text(picture),
            }
            for face, picture in zip(found, pictures, strict=True)
        ],
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


if __name__ == "__main__":
    from setnet.faces import FaceSettings

    answer_images(Connection(int(sys.argv[1])), FaceSettings.from_dict(json.loads(sys.argv[2])))
