"""Worker processes that open images for the server, with a short queue before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import FileIO
from typing import TYPE_CHECKING, TypeVar

from setnet.errors import PhotoError, WorkerError
from setnet.library import Example
from setnet.library.photo_reader import content_hash, faces_in
from setnet.sandbox import Limits, Message, Service, WorkerPool
from setnet.sandbox.messages import as_bytes, invalid_reply
from setnet.web.limits import BoundedThreads
from setnet.web.problems import too_busy

if TYPE_CHECKING:
    from setnet.faces import Face, FaceSettings

T = TypeVar("T")

_LONGEST_SIDE = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class SeenImage:
    """An uploaded image's size and faces, a small JPEG of each, and one of the image, which may be empty."""

    width: int
    height: int
    faces: tuple[Face, ...]
    pictures: tuple[bytes, ...]
    preview: bytes
    content: bytes

    def examples(self) -> list[Example]:
        """Return the faces as examples of people."""
        pairs = zip(self.faces, self.pictures, strict=True)
        return [
            Example(face.descriptor, None, face.box, picture, content=self.content) for face, picture in pairs
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
        return self._process(Message("thumbnail", facts, files=(image.fileno(),)), _parse_jpeg)

    def sprite(self, video: FileIO, times: Sequence[float]) -> bytes:
        """Return pictures of a video at some seconds beside each other."""
        return self._process(Message("sprite", {"times": list(times)}, files=(video.fileno(),)), _parse_jpeg)

    def face_picture(
        self,
        image: FileIO,
        box: tuple[float, float, float, float],
        side: int | None = None,
        at: float | None = None,
    ) -> bytes:
        """Return a small JPEG of a face in an image, or in a video's picture `at` a second."""
        facts = {"box": box, "side": side, "at": at}
        return self._process(Message("face picture", facts, files=(image.fileno(),)), _parse_jpeg)

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


def _parse_seen_image(reply: Message, dim: int, content: bytes) -> SeenImage:
    from setnet.faces import Face, Quality

    stored, descriptors = faces_in(reply, dim)
    faces = tuple(
        Face(face.box, face.landmarks, face.score, Quality(**face.quality), vector)
        for face, vector in zip(stored, descriptors, strict=True)
    )
    return SeenImage(
        reply.integer("width", 1, _LONGEST_SIDE),
        reply.integer("height", 1, _LONGEST_SIDE),
        faces,
        tuple(_parse_jpeg(reply, f"picture {number}") for number in range(len(faces))),
        _parse_jpeg(reply, "preview") if "preview" in reply.arrays else b"",
        content,
    )


def _parse_jpeg(reply: Message, name: str = "picture") -> bytes:
    data = reply.data(name)
    if not data.startswith(b"\xff\xd8\xff"):
        raise invalid_reply(f"{name} is no JPEG")
    return data
