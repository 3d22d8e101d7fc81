"""Faces in uploaded images, found in a few processes with a short queue before them."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import ModelError, PhotoError
from setnet.web.face_worker import READY
from setnet.web.problems import too_busy
from setnet.web.settings import WebSettings
from setnet.web.threads import BoundedThreads

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

__all__ = ["FacePool", "SeenFace", "SeenImage"]

_START_SECONDS = 120.0


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


class FacePool:
    """A fixed number of processes; an image that kills or blocks one costs a new process, no more."""

    def __init__(self, faces: FaceSettings, settings: WebSettings) -> None:
        self._faces = replace(faces, max_pixels=min(faces.max_pixels, settings.max_pixels))
        self._seconds = settings.face_seconds
        self._threads = BoundedThreads("face finding", settings.face_workers, settings.face_queue)
        self._mine = threading.local()
        self._children: set[_Child] = set()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def waiting(self) -> int:
        """Images being looked at or waiting."""
        return self._threads.waiting

    async def find(self, image: bytes, preview: bool = False) -> SeenImage:
        """Return the faces of an image; a full queue is refused at once."""
        return _image(await self._threads.run(self._ask, image, preview))

    async def warm_up(self) -> None:
        """Start a process before the first image comes."""
        await self._threads.run(self._child)

    def _ask(self, image: bytes, preview: bool) -> dict[str, Any]:
        child = self._child()
        try:
            answer = child.ask(image, preview, self._seconds)
        except (EOFError, OSError):
            self._drop(child)
            if self._closed:
                raise too_busy("the server is stopping") from None
            raise PhotoError(
                "the given image: the process that opened it died; it is damaged or hostile"
            ) from None
        if answer is None:
            self._drop(child)
            raise PhotoError(f"the given image: took longer than {self._seconds:.0f} s; use a smaller one")
        found: dict[str, Any] = json.loads(answer)
        return found

    def _child(self) -> _Child:
        child: _Child | None = getattr(self._mine, "child", None)
        if child is None or not child.alive:
            with self._lock:
                if self._closed:
                    raise too_busy("the server is stopping")
                child = _Child(self._faces)
                self._children.add(child)
            self._mine.child = child
        return child

    def _drop(self, child: _Child) -> None:
        self._mine.child = None
        with self._lock:
            self._children.discard(child)
        child.stop()

    def close(self) -> None:
        """End the processes, also in the middle of an image."""
        with self._lock:
            self._closed = True
            children = list(self._children)
        for child in children:
            child.stop()
        self._threads.close()


class _Child:
    """A fresh interpreter with one end of a socket pair."""

    def __init__(self, faces: FaceSettings) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "setnet.web.face_worker",
                    str(theirs.fileno()),
                    json.dumps(faces.to_dict()),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for the server, which ends its children itself
            )
        self._pipe = Connection(ours.detach())
        self._is_ready = False

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, image: bytes, preview: bool, seconds: float) -> bytes | None:
        """Return the process's answer, or None when it takes too long."""
        if not self._is_ready:
            if not self._pipe.poll(_START_SECONDS) or self._pipe.recv_bytes() != READY:
                return None
            self._is_ready = True
        self._pipe.send_bytes(b"preview" if preview else b"faces")
        self._pipe.send_bytes(image)
        return self._pipe.recv_bytes() if self._pipe.poll(seconds) else None

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()


def _environment() -> dict[str, str]:
    """Return the environment of a child: our module path, and one thread in each numeric library."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **one, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _image(answer: Mapping[str, Any]) -> SeenImage:
    if "error" in answer:
        raise (ModelError if answer["kind"] == "model" else PhotoError)(answer["error"])
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
