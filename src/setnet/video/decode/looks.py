"""What to look at in a video: a few pictures a second where something changes, key pictures elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from setnet.errors import VideoError
from setnet.video.decode.capture import opened
from setnet.video.decode.elementary import decoded
from setnet.video.decode.packets import Packet, PacketGroup, packet_groups
from setnet.video.decode.pictures import pictures
from setnet.video.look import Look

APART = 0.25  # seconds between looks: a cut is found to this precision
_OFTEN = 1.1  # seconds: key pictures so close are enough to look at, unless there is a cut between them
_STILL = 0.004  # bytes per picture as a share of the key picture's, where nothing moves
_BATCH_SECONDS = 12.0
_BATCH_BYTES = 32 << 20

HasChanged = Callable[[Look, Look], bool]


def looks(path: str, at: float, has_changed: HasChanged) -> Iterator[Look]:
    """Yield pictures of a video from a time on, in the order of their times.

    `has_changed` tells whether two pictures may be of different shots: then those between them are seen too.
    """
    last = at - APART
    groups = packet_groups(path, at)
    try:
        turned = _turned(path)
        for batch in _batches(groups):
            for look in _batch_looks(batch, turned, has_changed):
                if look.time > last + APART / 2 and look.time >= at - APART / 4:
                    last = look.time
                    yield look
            if not batch[-1].is_whole:
                raise VideoError("key pictures are too far from each other")
    except VideoError:  # the long way: every picture is decoded
        pass
    else:
        if last >= at:
            return
    finally:
        groups.close()  # type: ignore[attr-defined]
    yield from pictures(path, max(at, last + APART), APART)


def _batches(groups: Iterator[PacketGroup]) -> Iterator[list[PacketGroup]]:
    """Yield groups together: to open a decoder takes as long as some pictures."""
    batch: list[PacketGroup] = []
    size = 0
    for group in groups:
        batch.append(group)
        size += sum(len(packet.data) for packet in (group.key, *group.others))
        seconds = group.key.time + group.seconds - batch[0].key.time
        if not group.is_whole or seconds >= _BATCH_SECONDS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _batch_looks(batch: list[PacketGroup], turned: int, has_changed: HasChanged) -> Iterator[Look]:
    whole = _apart([group for group in batch if group.is_whole])
    frequent = [group for group in whole if group.seconds <= _OFTEN or group.motion < _STILL]
    keys = list(decoded([group.key for group in frequent], turned, 0.0)) if frequent else []
    by_time = {look.time: look for look in keys}
    inside: list[Packet] = []  # of neighbouring groups that are decoded together
    for number, group in enumerate(whole):
        key = by_time.get(group.key.time)
        following = by_time.get(whole[number + 1].key.time) if number + 1 < len(whole) else None
        if key is None or (following is not None and has_changed(key, following)):
            inside += group.needed
            continue
        if inside:
            yield from decoded(inside, turned, APART)
            inside = []
        yield key
    if inside:
        yield from decoded(inside, turned, APART)


def _apart(groups: list[PacketGroup]) -> list[PacketGroup]:
    """Return groups without short ones close to the one before: some videos have only key pictures."""
    kept: list[PacketGroup] = []
    for group in groups:
        if not kept or group.seconds > APART or group.key.time - kept[-1].key.time >= 2 * APART:
            kept.append(group)
    return kept


def _turned(path: str) -> int:
    import cv2

    capture = opened(path, packets=True)
    try:
        return int(np.nan_to_num(capture.get(cv2.CAP_PROP_ORIENTATION_META))) % 360
    finally:
        capture.release()
