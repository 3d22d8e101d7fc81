"""What to look at in a video: a few pictures a second where something changes, key pictures elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

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
        for batch, following in _batches(groups):
            for look in _batch_looks(batch, following, turned, has_changed):
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


def _batches(groups: Iterator[PacketGroup]) -> Iterator[tuple[list[PacketGroup], PacketGroup | None]]:
    """Yield groups together, with the one after them: to open a decoder takes as long as some pictures."""
    batch: list[PacketGroup] = []
    size = 0
    for group in groups:
        is_full = batch and (group.key.time - batch[0].key.time >= _BATCH_SECONDS or size >= _BATCH_BYTES)
        if is_full or (batch and not batch[-1].is_whole):
            yield batch, group
            batch, size = [], 0
        batch.append(group)
        size += sum(len(packet.data) for packet in (group.key, *group.others))
    if batch:
        yield batch, None


def _batch_looks(
    batch: list[PacketGroup], following: PacketGroup | None, turned: int, has_changed: HasChanged
) -> Iterator[Look]:
    whole = _apart([group for group in batch if group.is_whole])
    known = [*whole, following] if following is not None else whole
    keys = [group.key for group in known if group.seconds <= _OFTEN or group.motion < _STILL]
    by_time = {look.time: look for look in decoded(keys, turned, 0.0)} if keys else {}
    inside: list[Packet] = []  # of neighbouring groups that are decoded together
    for number, group in enumerate(whole):
        key = by_time.get(group.key.time)
        after = by_time.get(known[number + 1].key.time) if number + 1 < len(known) else None
        loud = group.loud_until
        seen = 0.0 if loud is None else loud + 2 * APART
        if following is None and number + 1 == len(whole):
            inside += group.needed(inf)  # the end of the video is that of its last picture
        elif key is None:
            # Its end is like a short group: the next key picture shows it, unless there is something new.
            inside += group.needed(max(group.end - _OFTEN, seen))
        elif loud is not None and after is not None and has_changed(key, after):
            inside += group.needed(seen)
        else:  # a change without many bytes is a cut at the next key picture
            yield from _before(key.time, inside, turned)
            inside = []
            yield key
    yield from _before(following.key.time if following is not None else inf, inside, turned)


def _before(key: float, packets: list[Packet], turned: int) -> Iterator[Look]:
    """Yield looks at packets, none just before a key picture, which would not be looked at so soon after."""
    if packets:
        yield from (look for look in decoded(packets, turned, APART) if look.time < key - APART / 2)


def _apart(groups: list[PacketGroup]) -> list[PacketGroup]:
    """Return groups without short ones close to the one before: some videos have only key pictures.

    Where a long one begins just after another, the long one is kept: it is the one after the cut.
    """
    kept: list[PacketGroup] = []
    for group in groups:
        if kept and group.seconds > APART and group.key.time - kept[-1].key.time <= APART / 2:
            kept.pop()
        if not kept or group.seconds > APART or group.key.time - kept[-1].key.time >= 2 * APART:
            kept.append(group)
    return kept


def _turned(path: str) -> int:
    import cv2

    capture = opened(path)  # one that yields packets does not say
    try:
        return int(np.nan_to_num(capture.get(cv2.CAP_PROP_ORIENTATION_META))) % 360
    finally:
        capture.release()
