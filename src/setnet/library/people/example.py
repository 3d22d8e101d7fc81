"""An example face of a person: where it comes from, and how its row is written and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library.store.paths import shown

if TYPE_CHECKING:
    from setnet.faces import Box

# A photo given by the user, a match they confirmed, a group they named, an imported file.
ORIGINS = ("portrait", "confirmed", "group", "import")


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """An example face of a person.

    Attributes
    ----------
    descriptor
        What the face is compared by.
    source, content, box
        The photo it came from, the hash of its file's bytes where that is known, and the place in it.
    picture
        A small JPEG of the face.
    origin
        How it became an example: one of `ORIGINS`.
    number, added
        Its number in the library, which is never another's, and since when; None before it is kept.
    """

    descriptor: NDArray[np.float32]
    source: str | None = None
    box: Box | None = None
    picture: bytes | None = None
    origin: str = "portrait"
    content: bytes | None = None
    number: int | None = None
    added: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return where the face comes from, as values that JSON can hold."""
        return {
            "number": self.number,
            "origin": self.origin,
            "source": self.source,
            "content": None if self.content is None else self.content.hex(),
            "box": None if self.box is None else list(self.box),
            "has_picture": self.picture is not None,
            "added": self.added,
        }


# Without the person, in the order of `example_of`.
EXAMPLE_COLUMNS = "descriptor, source, x0, y0, x1, y1, picture, origin, content, id, added"


def example_of(row: Sequence[Any]) -> Example:
    """Return the example of a row with `EXAMPLE_COLUMNS`."""
    from setnet.faces import Box

    descriptor, source, x0, y0, x1, y1, picture, origin, content, number, added = row
    return Example(
        descriptor_from(descriptor),
        None if source is None else shown(source),
        None if x0 is None else Box(x0, y0, x1, y1),
        picture,
        origin,
        content,
        number,
        added,
    )


def example_values(example: Example) -> dict[str, Any]:
    """Return the columns of a new row, but for the person and the time."""
    box: Sequence[float | None] = (None,) * 4 if example.box is None else [float(x) for x in example.box]
    return {
        "descriptor": example.descriptor.astype("<f4").tobytes(),
        "source": None if example.source is None else example.source.encode("utf-8", "surrogateescape"),
        **dict(zip(("x0", "y0", "x1", "y1"), box, strict=True)),
        "picture": example.picture,
        "origin": example.origin,
        "content": example.content,
    }


def descriptor_from(stored: bytes) -> NDArray[np.float32]:
    """Return the descriptor of its stored bytes."""
    return np.frombuffer(stored, "<f4").astype(np.float32)


def refuse_unfit(descriptor: NDArray[np.float32], dim: int, name: str) -> None:
    """Raise when a descriptor is none of a library with descriptors of `dim` numbers."""
    if descriptor.shape != (dim,) or not np.isfinite(descriptor).all():
        raise InvalidInputError(
            f"a descriptor of shape {descriptor.shape} for {name!r}: this library's have {dim} finite numbers"
        )
