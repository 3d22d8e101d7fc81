"""Threads for blocking calls and worker processes that open images, each with a short queue before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from io import FileIO
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from setnet.errors import PhotoError, WorkerError
from setnet.library import Example
from setnet.library.photo_reader import PhotoResult, jpeg_in, photo_in, taken_in
from setnet.library.photos import content_hash
from setnet.sandbox import Limits, Message, Service, WorkerPool
from setnet.sandbox.messages import as_bytes
from setnet.web.problems import too_busy

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

P = ParamSpec("P")
T = TypeVar("T")

_PICTURE = partial(jpeg_in, name="picture")


class BoundedThreads:
    """Runs blocking calls beside the event loop; when too many wait, the next is refused with 503.

    The threads are never replaced, because the library keeps a database connection for each.
    """

    def __init__(self, what: str, threads: int, queue: int) -> None:
        self._what = what
        self._most = threads + queue
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"setnet-{what}")
        self.waiting = 0

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the call returns."""
        if self.waiting >= self._most:
            raise too_busy(f"too much {self._what} at once")
        self.waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, partial(call, *args, **kwargs))
        finally:
            self.waiting -= 1

    def close(self) -> None:
        """Finish what runs, drop what waits."""
        self._threads.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True, eq=False)
class SeenImage:
    """What was found in an uploaded image, a small JPEG of each face, and one of it, which may be empty."""

    photo: PhotoResult
    pictures: tuple[bytes, ...]
    preview: bytes

    def examples(self) -> list[Example]:
        """Return the faces as examples of people."""
        if self.photo.descriptors is None:
            return []
        rows = zip(self.photo.faces, self.photo.descriptors, self.pictures, strict=True)
        return [
            Example(vector, None, face.box, picture, content=self.photo.hash)
            for face, vector, picture in rows
        ]


class ImagePool(BoundedThreads):
    """Threads for the event loop that let worker processes open images."""

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
        super().__init__(what, workers, queue)
        options = {"faces": faces.to_dict(), "finds_faces": finds_faces}
        service = Service("setnet.web.image_service", options)
        self._pool = WorkerPool(service, workers, Limits(seconds=seconds))

    async def warm_up(self) -> None:
        """Start a process before the first image comes."""
        await self.run(self._pool.warm_up)

    async def find(self, image: bytes, dim: int, preview: bool = False) -> SeenImage:
        """Return the faces of an image, with descriptors of `dim` numbers."""
        task = Message("faces", {"preview": preview}, {"image": as_bytes(image)})
        return await self.run(
            self._process, task, lambda reply: _parse_seen_image(reply, dim, content_hash(image))
        )

    def thumbnail(self, image: FileIO, side: int, at: float | None = None) -> bytes:
        """Return an image, or a video's picture `at` a second, as an upright JPEG that fits a square.

        For calls in `run`, as the others.
        """
        facts = {"side": side, "at": at}
        return self._process(Message("thumbnail", facts, files=(image.fileno(),)), _PICTURE)

    def sprite(self, video: FileIO, times: Sequence[float]) -> bytes:
        """Return pictures of a video at some seconds beside each other."""
        return self._process(Message("sprite", {"times": list(times)}, files=(video.fileno(),)), _PICTURE)

    def camera(self, image: FileIO) -> dict[str, str | float]:
        """Return what an image tells of the camera, its settings and the place."""
        return self._process(Message("camera", files=(image.fileno(),)), _parse_camera)

    def face_picture(
        self,
        image: FileIO,
        box: tuple[float, float, float, float],
        side: int | None = None,
        at: float | None = None,
    ) -> bytes:
        """Return a small JPEG of a face in an image, or in a video's picture `at` a second."""
        facts = {"box": box, "side": side, "at": at}
        return self._process(Message("face picture", facts, files=(image.fileno(),)), _PICTURE)

    def _process(self, task: Message, parse: Callable[[Message], T]) -> T:
        try:
            return self._pool.call(task, parse)
        except WorkerError as error:
            if self._pool.is_closed:
                raise too_busy("the server is stopping") from None
            raise PhotoError(f"the given image: {error}; it is damaged, hostile or too large") from None

    def close(self) -> None:
        """End the processes, also in the middle of an image."""
        self._pool.close()
        super().close()


_CAMERA_NUMBERS = {"latitude": -90.0, "longitude": -180.0} | dict.fromkeys(
    ("exposure", "aperture", "iso", "focal_length"), 0.0
)


def _parse_camera(reply: Message) -> dict[str, str | float]:
    texts = {name: reply.text(name) for name in ("camera", "lens") if name in reply.fields}
    lowest = {name: low for name, low in _CAMERA_NUMBERS.items() if name in reply.fields}
    return texts | {name: reply.number(name, low, 1e6) for name, low in lowest.items()}


def _parse_seen_image(reply: Message, dim: int, content: bytes) -> SeenImage:
    photo = photo_in(reply, PhotoResult(b"", hash=content, taken=taken_in(reply)), dim)
    pictures = tuple(jpeg_in(reply, f"picture {number}") for number in range(len(photo.faces)))
    return SeenImage(photo, pictures, jpeg_in(reply, "preview") if "preview" in reply.arrays else b"")
