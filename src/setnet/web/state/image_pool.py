"""Worker processes that open images for the server, with a short queue before them."""

from __future__ import annotations

from collections.abc import Callable
from io import FileIO
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from setnet.errors import PhotoError, WorkerError
from setnet.web.server.bounded_threads import BoundedThreads
from setnet.web.server.problems import too_busy
from setnet.workers import Limits, Message, Service, WorkerPool

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

__all__ = ["ImagePool", "jpeg_in"]

P = ParamSpec("P")
T = TypeVar("T")


class ImagePool:
    """A worker pool for the event loop: calls run in threads, and when too many wait the next is refused."""

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
        options = {"faces": faces.to_dict(), "finds_faces": finds_faces}
        service = Service("setnet.web.state.image_service", options)
        self._pool = WorkerPool(service, workers, Limits(seconds=seconds))
        self._threads = BoundedThreads(what, workers, queue)

    @property
    def waiting(self) -> int:
        """Images being processed or waiting."""
        return self._threads.waiting

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a call returns that may use the methods below; a full queue is refused at once."""
        return await self._threads.run(call, *args, **kwargs)

    async def warm_up(self) -> None:
        """Start a process before the first image comes."""
        await self._threads.run(self._pool.warm_up)

    def thumbnail(self, image: FileIO, side: int) -> bytes:
        """Return an image as an upright JPEG that fits a square; for calls in `run`."""
        return self.process(Message("thumbnail", {"side": side}, files=(image.fileno(),)), jpeg_in)

    def face_picture(self, image: FileIO, box: tuple[float, float, float, float]) -> bytes:
        """Return a small JPEG of a face in an image; for calls in `run`."""
        return self.process(Message("face picture", {"box": box}, files=(image.fileno(),)), jpeg_in)

    def process(self, task: Message, parse: Callable[[Message], T]) -> T:
        """Return the parsed reply of a process to a task about an image; for calls in `run`."""
        try:
            return self._pool.call(task, parse)
        except WorkerError as error:
            if self._pool.is_closed:
                raise too_busy("the server is stopping") from None
            raise PhotoError(f"the given image: {error}; it is damaged, hostile or too large") from None

    def close(self) -> None:
        """End the processes, also in the middle of an image."""
        self._pool.close()
        self._threads.close()


def jpeg_in(reply: Message, name: str = "picture") -> bytes:
    """Return the bytes of a JPEG in a reply."""
    data = reply.data(name)
    if not data.startswith(b"\xff\xd8\xff"):
        raise WorkerError(f"its worker process gave an invalid reply ({name} is no JPEG)")
    return data
