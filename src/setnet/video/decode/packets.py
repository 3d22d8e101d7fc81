"""The packets of a video, in groups that can be decoded by themselves: a key picture and what follows it.

Reading packets costs next to nothing, decoding is what takes time. So packets tell which pictures are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from setnet.video.decode.capture import milliseconds, opened

_LONGEST = 20.0  # seconds of a group that is kept in memory
_LARGEST = 64 << 20  # bytes of it
_LOUD = 0.25  # bytes of a packet as a share of the key picture's, from which it may show something new
_CODECS = {"h264": "h264", "avc1": "h264", "hevc": "hevc", "hev1": "hevc", "hvc1": "hevc"}


class Packet(NamedTuple):
    """An encoded picture and its time in seconds; `disposable` when no other picture needs it."""

    time: float
    data: bytes
    disposable: bool


@dataclass
class PacketGroup:
    """A key picture and the packets up to the next one; `is_whole` unless it is too long to be kept."""

    key: Packet
    others: list[Packet] = field(default_factory=list)
    is_whole: bool = True

    def needed(self, until: float) -> list[Packet]:
        """Return the packets that are decoded to see it up to a time, without those that no other needs.

        Pictures shown before the key picture are left out too: they need the group before.
        """
        others = [p for p in self.others if not p.disposable and p.time > self.key.time]
        # In the order of decoding: a picture may need one that is shown after it.
        count = max((n + 1 for n, p in enumerate(others) if p.time <= until), default=0)
        return [self.key, *others[:count]]

    @property
    def end(self) -> float:
        """The time of the last picture."""
        return max([p.time for p in self.others], default=self.key.time)

    @property
    def seconds(self) -> float:
        """From the key picture to the last one."""
        return self.end - self.key.time

    @property
    def loud_until(self) -> float | None:
        """The time of the last picture that took many bytes, as one does after a cut or within a dissolve."""
        enough = _LOUD * len(self.key.data)
        return max((p.time for p in self.others if len(p.data) > enough), default=None)

    @property
    def motion(self) -> float:
        """Bytes per picture after the key picture, as a share of its own: little where nothing moves."""
        if not self.others:
            return 0.0
        return sum(len(p.data) for p in self.others) / len(self.others) / max(1, len(self.key.data))


def packet_groups(path: str, at: float) -> Iterator[PacketGroup]:
    """Yield the groups of packets from the key picture before a time on.

    Nothing comes from a video whose codec (other than H.264 and H.265) cannot be decoded from packets alone.
    """
    import cv2

    capture = opened(path, packets=True)
    try:
        codec = _codec(int(capture.get(cv2.CAP_PROP_FOURCC)))
        if codec is None:
            return
        if at > 0:
            capture.set(cv2.CAP_PROP_POS_MSEC, at * 1000)
        group: PacketGroup | None = None
        size = 0
        while capture.grab():
            found, data = capture.retrieve()
            if not found or data is None:
                continue
            encoded = data.tobytes()
            packet = Packet(milliseconds(capture) / 1000, encoded, _is_disposable(encoded, codec))
            if capture.get(cv2.CAP_PROP_LRF_HAS_KEY_FRAME):
                if group is not None:
                    yield group
                group, size = PacketGroup(packet), len(encoded)
            elif group is not None and group.is_whole:
                group.others.append(packet)
                size += len(encoded)
                group.is_whole = size <= _LARGEST and packet.time - group.key.time <= _LONGEST
        if group is not None:
            yield group
    finally:
        capture.release()


def _codec(fourcc: int) -> str | None:
    name = fourcc.to_bytes(4, "little", signed=False) if 0 <= fourcc < 1 << 32 else b""
    return _CODECS.get(name.decode("latin-1").lower())


def _is_disposable(data: bytes, codec: str) -> bool:
    """Tell whether a picture is a reference for none that is decoded, by the header of its first slice.

    Of H.265 that is also every picture of a higher temporal layer: those below never refer to it.
    """
    start = 0
    while (start := data.find(b"\0\0\1", start)) >= 0 and start + 3 < len(data):
        header = data[start + 3]
        if codec == "h264":
            if header & 31 in (1, 5):
                return header >> 5 == 0
        elif (kind := header >> 1 & 63) < 32:
            layer = (data[start + 4] & 7) - 1 if start + 4 < len(data) else 0
            return layer > 0 or (kind < 16 and kind % 2 == 0)
        start += 3
    return False
