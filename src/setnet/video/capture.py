"""Opens a video file for OpenCV, and reads its packets undecoded."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from setnet.errors import VideoError

if TYPE_CHECKING:
    import cv2

# Playlists are left out: they would make the decoder open other files, or addresses in the network.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,asf,flv,ogg,h264,hevc"
_OPTIONS = f"protocol_whitelist;file|format_whitelist;{_CONTAINERS}"
_SECONDS = 20  # that opening or reading may wait for the disk


def open_capture(source: str | io.BytesIO, *, packets: bool = False) -> cv2.VideoCapture:
    """Return an open video, on one thread; with `packets` it yields what is encoded instead of pictures."""
    import cv2

    os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = _OPTIONS
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # what matters of its messages is a VideoError
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    settings = [
        cv2.CAP_PROP_N_THREADS, 1, cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, _SECONDS * 1000,
        cv2.CAP_PROP_READ_TIMEOUT_MSEC, _SECONDS * 1000,
    ]  # fmt: skip
    if packets:
        settings += [cv2.CAP_PROP_FORMAT, -1]
    with suppress(cv2.error):
        capture = cv2.VideoCapture(cast(str, source), cv2.CAP_FFMPEG, settings)
        if capture.isOpened():
            return capture
    raise VideoError(
        "not a video that setnet can read (MP4, MOV, MKV, WebM, AVI, MPEG, WMV; not AV1), or damaged"
    )


def milliseconds(capture: cv2.VideoCapture) -> float:
    """Return the time of the last picture or packet in milliseconds; 0 where the file has nonsense."""
    import cv2

    time = float(capture.get(cv2.CAP_PROP_POS_MSEC))
    return time if 0 <= time < 1e12 else 0.0


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

    def needed_packets(self, until: float) -> list[Packet]:
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

    capture = open_capture(path, packets=True)
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
