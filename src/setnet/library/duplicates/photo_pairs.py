"""Describes and compares photos in worker processes: one that crashes, hangs or lies costs one photo."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from setnet.errors import SetNetError, WorkerError
from setnet.library.duplicates.described_photo import DescribedPhoto
from setnet.library.duplicates.vocabulary import VLAD_DIM
from setnet.library.store.content_hash import HASH_BYTES
from setnet.library.store.paths import shown
from setnet.sandbox import Limits, Message, Service, WorkerPool, invalid_reply, unordered_map

_MOST_PIXELS = 1 << 50

Pair = tuple[bytes, bytes, bool]  # two photos, the second maybe mirrored
OnFailure = Callable[[bytes, str], None]


class PhotoPairs:
    """Reads photo files and yields results as they come, in no fixed order.

    Parameters
    ----------
    workers
        Number of processes; 0 works in this process (no protection against a crash).
    on_failure
        Called with the path of each photo that could not be read, and the reason.
    limits
        Time and memory that one photo, or pair, may take.
    """

    def __init__(self, workers: int, on_failure: OnFailure, limits: Limits | None = None) -> None:
        self._pool = WorkerPool(Service(f"{__package__}.comparison_service"), workers, limits, ahead=1)
        self._on_failure = on_failure

    def __enter__(self) -> PhotoPairs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        self._pool.close()

    def described(self, paths: Iterable[bytes]) -> Iterator[DescribedPhoto | None]:
        """Yield each photo with its VLADs; None stands for one that could not be read."""
        results = unordered_map(self._describe, paths, self._pool.capacity)
        for path, result in results:
            if isinstance(result, str):
                self._on_failure(path, result)
            yield result if isinstance(result, DescribedPhoto) else None

    def _describe(self, path: bytes) -> tuple[bytes, DescribedPhoto | str]:
        task = Message("describe", {"path": os.fsdecode(path)})
        try:
            return path, self._pool.call(task, lambda reply: _described(path, reply))
        except WorkerError as error:
            return path, str(error)

    def agreements(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, float]]:
        """Yield each pair of photos with how much of them is the same.

        A pair that can no longer be compared, as when a file has gone, is not the same.
        """
        return unordered_map(self._compare, pairs, self._pool.capacity)

    def _compare(self, pair: Pair) -> tuple[Pair, float]:
        one, other, mirrored = pair
        fields = {"one": os.fsdecode(one), "other": os.fsdecode(other), "mirrored": mirrored}
        try:
            return pair, self._pool.call(
                Message("compare", fields), lambda reply: reply.number("agreement", 0.0, 1.0)
            )
        except SetNetError as error:
            self._on_failure(one, f"could not be compared with {shown(other)}: {error}")
            return pair, 0.0


def _described(path: bytes, reply: Message) -> DescribedPhoto | str:
    if reply.fields.get("reason") is not None:
        return reply.text("reason")
    content = reply.data("hash")
    vlads = reply.array("vlads", np.float32, 2, VLAD_DIM)
    if len(content) != HASH_BYTES:
        raise invalid_reply("a wrong hash")
    return DescribedPhoto(path, content, reply.integer("pixels", 1, _MOST_PIXELS), vlads)
