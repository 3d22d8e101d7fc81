"""The tasks of a process that opens images for the server, so that a hostile one harms only itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.errors import PhotoError, SetNetError
from setnet.sandbox import Message, Tasks
from setnet.sandbox.messages import as_bytes

if TYPE_CHECKING:
    from setnet.faces import FaceSettings, Photo

_LARGEST_FILE = 512 << 20
_PREVIEW_SIDE = 1280
_MOST_FACES = 200


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Return the tasks for the face settings in ``options["faces"]``; load models if it ``finds_faces``."""
    from setnet.faces import FaceSettings, extract_faces

    settings = FaceSettings.from_dict(options["faces"])
    if options["finds_faces"]:
        with suppress(SetNetError):  # a missing model is reported with the first image
            extract_faces(np.zeros((64, 64, 3), np.uint8), settings)
    calls: dict[str, Callable[[Photo, Message], Message]] = {
        "faces": partial(_faces, settings),
        "thumbnail": _thumbnail,
        "face picture": _face_picture,
    }
    found: dict[str, Callable[[Message], Message]] = {
        name: partial(_with_photo, call, settings.max_pixels) for name, call in calls.items()
    }
    return found | {"sprite": _sprite, "camera": _camera}


def _with_photo(call: Callable[[Photo, Message], Message], max_pixels: int, task: Message) -> Message:
    from setnet.faces import Photo, open_photo

    if (at := task.fields.get("at")) is not None:
        from setnet.video import frames_at

        (pixels,) = frames_at(_file(task), [at])
        return call(Photo(pixels, None, pixels.shape[1], pixels.shape[0], "video"), task)
    data = _contents(task.files[0]) if task.files else task.arrays["image"].tobytes()
    return call(open_photo(data, max_pixels=max_pixels), task)


def _file(task: Message) -> str:
    """Return the path by which the process reaches the file that came with a task."""
    return f"/dev/fd/{task.files[0]}"


def _sprite(task: Message) -> Message:
    from setnet.video import frames_at
    from setnet.video.sprite import make_sprite

    picture = make_sprite(frames_at(_file(task), task.fields["times"]))
    return Message("done", arrays={"picture": as_bytes(picture)})


def _camera(task: Message) -> Message:
    from setnet.faces.exif import read_camera
    from setnet.faces.photo import open_image

    with os.fdopen(task.files[0], "rb", closefd=False) as file, open_image(file, "the given image") as image:
        return Message("done", read_camera(image))


def _contents(handle: int) -> bytes:
    with os.fdopen(handle, "rb", closefd=False) as file:
        data = file.read(_LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise PhotoError(f"the given image: larger than {_LARGEST_FILE >> 20} MB")
    return data


def _faces(settings: FaceSettings, photo: Photo, task: Message) -> Message:
    from setnet.faces import extract_faces
    from setnet.library.photo_reader import photo_message
    from setnet.library.pictures import face_picture, jpeg, thumbnail

    faces = extract_faces(photo, settings)[:_MOST_FACES]
    found = photo_message(photo, faces, settings)
    pictures = [face_picture(photo.pixels, photo.in_pixels(face.box)) for face in faces]
    arrays = {f"picture {number}": as_bytes(picture) for number, picture in enumerate(pictures)}
    if task.fields["preview"]:
        arrays["preview"] = as_bytes(jpeg(thumbnail(photo.pixels, _PREVIEW_SIDE)))
    return replace(found, arrays={**found.arrays, **arrays})


def _thumbnail(photo: Photo, task: Message) -> Message:
    from setnet.library.pictures import jpeg, thumbnail

    picture = jpeg(thumbnail(photo.pixels, task.fields["side"]))
    return Message("done", arrays={"picture": as_bytes(picture)})


def _face_picture(photo: Photo, task: Message) -> Message:
    from setnet.faces import Box
    from setnet.library.pictures import face_picture

    side = {} if task.fields["side"] is None else {"side": task.fields["side"]}
    picture = face_picture(photo.pixels, photo.in_pixels(Box(*task.fields["box"])), **side)
    return Message("done", arrays={"picture": as_bytes(picture)})
