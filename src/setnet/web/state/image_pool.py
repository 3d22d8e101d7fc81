"""Processes that open images for the server, with a short queue before them."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from io import FileIO
from multiprocessing.reduction import send_handle
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from setnet.errors import ModelError, PhotoError
from setnet.library import start_child
from setnet.web.server.bounded_threads import BoundedThreads
from setnet.web.server.problems import too_busy
from setnet.web.state.image_worker import READY

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

__all__ = ["ImagePool"]

_START_SECONDS = 120.0

P = ParamSpec("P")
T = TypeVar("T")


class ImagePool:
    """A fixed number of processes; an image that kills or blocks one costs a new process, no more."""

    def __init__(
        self,
        what: str,
        faces: FaceSettings,
        *,
        workers: int,
        queue: int,
        seconds: float,
        finds_faces: bool = False,
    ) -> None:
        self._arguments = [json.dumps(faces.to_dict()), "faces" if finds_faces else "pictures"]
        self._seconds = seconds
        self._threads = BoundedThreads(what, workers, queue)
        self._mine = threading.local()
        self._children: set[_Child] = set()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def waiting(self) -> int:
        """Images being looked at or waiting."""
        return self._threads.waiting

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a call returns that may `ask`; a full queue is refused at once."""
        return await self._threads.run(call, *args, **kwargs)

    async def warm_up(self) -> None:
        """Start a process before the first image comes."""
        await self._threads.run(self._child)

    def thumbnail(self, image: FileIO, side: int) -> bytes:
        """Return an image as an upright JPEG that fits a square; for calls in `run`."""
        return base64.b64decode(self.ask(image, do="thumbnail", side=side)["picture"])

    def face_picture(self, image: FileIO, box: tuple[float, float, float, float]) -> bytes:
        """Return a small JPEG of a face in an image; for calls in `run`."""
        return base64.b64decode(self.ask(image, do="face picture", box=box)["picture"])

    def ask(self, image: bytes | FileIO, **request: Any) -> dict[str, Any]:
        """Return a process's answer; for calls in `run`, as each thread has a process of its own."""
        child = self._child()
        try:
            answer = child.ask(image, request, self._seconds)
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
        if "error" in found:
            raise (ModelError if found["kind"] == "model" else PhotoError)(found["error"])
        return found

    def _child(self) -> _Child:
        child: _Child | None = getattr(self._mine, "child", None)
        if child is None or not child.alive:
            with self._lock:
                if self._closed:
                    raise too_busy("the server is stopping")
                if child is not None:
                    self._children.discard(child)
                    child.stop()
                child = _Child(self._arguments)
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
            child.kill()
        self._threads.close()
        for child in children:  # now that no thread uses their pipes
            child.stop()


class _Child:
    """A process, and whether it said that it is ready."""

    def __init__(self, arguments: list[str]) -> None:
        self._process, self._pipe = start_child("setnet.web.state.image_worker", *arguments)
        self._is_ready = False

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, image: bytes | FileIO, request: dict[str, Any], seconds: float) -> bytes | None:
        """Return the process's answer, or None when it takes too long."""
        if not self._is_ready:
            if not self._pipe.poll(_START_SECONDS) or self._pipe.recv_bytes() != READY:
                return None
            self._is_ready = True
        is_file = not isinstance(image, bytes)
        self._pipe.send_bytes(json.dumps({**request, "is_file": is_file}).encode())
        if isinstance(image, bytes):
            self._pipe.send_bytes(image)
        else:  # the process reads it: what a file holds never lies in the server's memory
            send_handle(self._pipe, image.fileno(), self._process.pid)
        return self._pipe.recv_bytes() if self._pipe.poll(seconds) else None

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()
