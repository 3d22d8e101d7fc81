"""Changes to MP4 files that OpenCV wrote: a flag that turns the pictures, and a varying frame rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_HOLDERS = (b"moov", b"trak", b"mdia", b"minf", b"stbl")  # boxes around the list of times, outermost first
_DURATIONS = {
    b"mvhd": 20,
    b"tkhd": 24,
    b"elst": 12,
    b"mdhd": 20,
}  # bytes from the name of a box to its duration


def set_turned(path: Path) -> None:
    """Set the flag of an MP4 file that says to turn its pictures by 90 degrees to the right."""
    data = bytearray(path.read_bytes())
    place = data.find(b"tkhd") + 44
    one, minus = (1 << 16).to_bytes(4, "big"), (-(1 << 16)).to_bytes(4, "big", signed=True)
    zero, last = bytes(4), (1 << 30).to_bytes(4, "big")
    data[place : place + 36] = b"".join((zero, one, zero, minus, zero, zero, zero, zero, last))
    path.write_bytes(data)


def set_times(path: Path, lengths: NDArray[np.float64]) -> None:
    """Let the pictures of an MP4 file with a steady rate last so many times as long as they do, each.

    The file ends with its description, as OpenCV writes it: a longer list of times moves nothing else.
    """
    data = bytearray(path.read_bytes())
    begin = data.find(b"moov") - 4
    place = data.find(b"stts", begin) - 4
    size, usual = (int.from_bytes(data[at : at + 4], "big") for at in (place, place + 20))
    rows = b"".join(
        (1).to_bytes(4, "big") + round(usual * float(length)).to_bytes(4, "big") for length in lengths
    )
    table = bytes(4) + len(lengths).to_bytes(4, "big") + rows
    data[place : place + size] = (8 + len(table)).to_bytes(4, "big") + b"stts" + table
    longer = float(lengths.mean())
    for name, offset in _DURATIONS.items():
        at = data.find(name, begin) + offset
        whole = round(int.from_bytes(data[at : at + 4], "big") * longer)
        data[at : at + 4] = whole.to_bytes(4, "big")
    for name in _HOLDERS:
        at = data.find(name, begin) - 4
        whole = int.from_bytes(data[at : at + 4], "big") + 8 + len(table) - size
        data[at : at + 4] = whole.to_bytes(4, "big")
    path.write_bytes(data)
