"""What is sent to a worker process and back; a reply is checked before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import WorkerError

_LONGEST_TEXT = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A task or a reply.

    The methods return one value each, or raise `WorkerError` when the message has none of that kind: a
    process that opened a hostile file may say anything.

    Attributes
    ----------
    name : of the task to run; of a reply, "ready", "done" or "failed"
    fields : values that JSON can hold
    arrays : of the types uint8, int64, float32 and float64
    files : open file descriptors; only a task carries any
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    files: tuple[int, ...] = ()

    def flag(self, name: str) -> bool:
        """Return a truth value."""
        value = self.fields.get(name)
        if not isinstance(value, bool):
            raise invalid_reply(f"{name} is not true or false")
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise invalid_reply(f"{name} is not a whole number from {low} to {high}")
        return value

    def number(self, name: str, low: float, high: float) -> float:
        """Return a number from `low` to `high`."""
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise invalid_reply(f"{name} is not a number from {low} to {high}")
        return float(value)

    def text(self, name: str) -> str:
        """Return a text, cut to a sensible length, without control characters and broken Unicode."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise invalid_reply(f"{name} is not a text")
        return "".join(c if c.isprintable() else " " for c in value[:_LONGEST_TEXT])

    def array(self, name: str, dtype: type[np.generic], *shape: int | None) -> NDArray[Any]:
        """Return an array of finite values; None in the shape stands for any length."""
        value = self.arrays.get(name)
        fits = (
            value is not None
            and value.dtype == dtype
            and value.ndim == len(shape)
            and all(want is None or want == have for want, have in zip(shape, value.shape, strict=True))
        )
        if value is None or not fits or not np.isfinite(value).all():
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise invalid_reply(f"{name} is not finite {np.dtype(dtype).name} of shape ({wanted})")
        return value

    def data(self, name: str) -> bytes:
        """Return an array of bytes as `bytes`."""
        return self.array(name, np.uint8, None).tobytes()


def as_bytes(data: bytes) -> NDArray[np.uint8]:
    """Return bytes as an array that a message can carry."""
    return np.frombuffer(data, np.uint8)


def invalid_reply(what: str) -> WorkerError:
    """Return the error for a reply that cannot be used, and says what it is."""
    return WorkerError(f"its worker process gave an invalid reply ({what})")
