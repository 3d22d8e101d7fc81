"""Where one shot ends and the next begins: cuts, dissolves, blank pictures, long takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from setnet.video.frames import Frame
from setnet.video.people import Track

_WIDTH, _HEIGHT = 64, 36
_ACROSS, _DOWN = 4, 3
_BINS = (12, 6, 6)  # of brightness, redness, blueness


@dataclass(frozen=True, eq=False, slots=True)
class Signature:
    """A frame in short: `tiny` is (36, 64, 3), `histograms` (blocks, bins) with sum 1 for each block."""

    time: float
    tiny: NDArray[np.float32]
    histograms: NDArray[np.float32]

    @property
    def contrast(self) -> float:
        """The spread of brightness, 0 to 127: next to nothing in a black picture."""
        return float(self.tiny[..., 0].std())

    def distance(self, other: Signature) -> float:
        """Return how different two frames are, 0 to 1: movement changes little, another scene much."""
        return float(np.abs(self.histograms - other.histograms).sum()) / (2 * len(self.histograms))


def signature(frame: Frame) -> Signature:
    """Return the signature of a frame."""
    import cv2

    step = max(1, min(frame.bgr.shape[0] // (2 * _HEIGHT), frame.bgr.shape[1] // (2 * _WIDTH)))
    small = cv2.resize(
        np.ascontiguousarray(frame.bgr[::step, ::step]), (_WIDTH, _HEIGHT), interpolation=cv2.INTER_AREA
    )
    tiny = np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2YCrCb), np.float32)
    blocks = tiny.reshape(_DOWN, _HEIGHT // _DOWN, _ACROSS, _WIDTH // _ACROSS, 3).transpose(0, 2, 1, 3, 4)
    pixels = blocks.reshape(_DOWN * _ACROSS, -1, 3)
    parts = []
    for channel, bins in enumerate(_BINS):
        # Colours keep near the middle: their bins cover the middle half.
        low, high = (0.0, 256.0) if channel == 0 else (64.0, 192.0)
        number = np.clip((pixels[..., channel] - low) * (bins / (high - low)), 0, bins - 1)
        parts.append(_soft_histogram(number, bins))
    return Signature(frame.time, tiny, (np.concatenate(parts, axis=1) / len(_BINS)).astype(np.float32))


def _soft_histogram(values: NDArray[np.float32], bins: int) -> NDArray[np.float32]:
    """Return shares of bins by row; a value between two counts for both, so that small changes stay small."""
    low = np.minimum(values.astype(np.int64), bins - 1)
    rest = (values - low).astype(np.float32)
    found = np.zeros((len(values), bins + 1), np.float32)
    rows = np.broadcast_to(np.arange(len(values))[:, None], low.shape)
    np.add.at(found, (rows, low), 1 - rest)
    np.add.at(found, (rows, low + 1), rest)
    found[:, bins - 1] += found[:, bins]
    return np.asarray(found[:, :bins] / values.shape[1], np.float32)


CUT_DISTANCE = 0.22  # distance of frames on both sides of a cut, at least
_STEADY = 3.0  # times what frames nearby differ: in shaken pictures all of them differ
_NEARBY = 4  # frames on both sides
_BLANK = 9.0  # contrast of a black or white picture
_FADING = 1.15  # times the contrast of a frame that the one further from a blank picture has
_DISSOLVE = 2.0  # seconds that a dissolve takes at most
_MIXED = 0.42  # what a mix of both shots leaves unexplained of a picture in the middle, at most
_MOVING = 0.05  # distance from which something is going on
_SHORTEST = 0.4  # seconds of a shot

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a shot and the beginning of the next; the same time, unless one dissolves into the other."""

    end: float
    begin: float


def find_cuts(signatures: Sequence[Signature]) -> list[Cut]:
    """Return the cuts between shots, in order."""
    if len(signatures) < 2:
        return []
    found = _blank_cuts(signatures)
    steps = np.array([b.distance(a) for a, b in pairwise(signatures)])
    gaps = np.array([max(1e-3, b.time - a.time) for a, b in pairwise(signatures)])
    for place in np.flatnonzero(steps > CUT_DISTANCE).tolist():
        if _is_cut(steps, gaps, place):
            found.append(Cut(signatures[place].time, signatures[place + 1].time))
    found += _dissolves(signatures, steps, found)
    return _drop_close(sorted(found, key=lambda cut: cut.begin), signatures[0].time)


def may_be_cut(a: Signature, b: Signature) -> bool:
    """Return whether two frames, some pictures apart, may be of different shots."""
    return a.distance(b) > 0.7 * CUT_DISTANCE


def _is_cut(steps: Floats, gaps: Floats, place: int) -> bool:
    # Looks that are further from each other differ more, by movement alone.
    expected = steps * np.minimum(1, np.sqrt(gaps[place] / gaps))
    nearby = np.concatenate(
        [expected[max(0, place - _NEARBY) : place], expected[place + 1 : place + 1 + _NEARBY]]
    )
    usual = float(np.median(nearby)) if len(nearby) else 0.0
    return bool(steps[place] > _STEADY * usual)


def _blank_cuts(signatures: Sequence[Signature]) -> list[Cut]:
    """Return where pictures fade out, are blank and fade in between others."""
    contrast = [s.contrast for s in signatures]
    found, place = [], 0
    while place < len(contrast):
        if contrast[place] >= _BLANK:
            place += 1
            continue
        first = last = place
        while last + 1 < len(contrast) and contrast[last + 1] < _BLANK:
            last += 1
        place = last + 1
        while first > 0 and contrast[first - 1] > contrast[first] * _FADING:
            first -= 1
        while place < len(contrast) - 1 and contrast[place + 1] > contrast[place] * _FADING:
            place += 1
        if first > 0 and place < len(contrast):
            found.append(Cut(signatures[first].time, signatures[place].time))
    return found


def _dissolves(signatures: Sequence[Signature], steps: Floats, known: Sequence[Cut]) -> list[Cut]:
    """Return where each picture of a stretch is a mix of the pictures at its ends, which differ."""
    found: list[Cut] = []
    first = 0
    while first < len(signatures) - 2:
        last = _end_of_change(signatures, steps, first)
        start, stop = signatures[first], signatures[last]
        overlaps = any(cut.begin > start.time and cut.end < stop.time for cut in known)
        if last - first < 2 or overlaps or start.distance(stop) < CUT_DISTANCE:
            first += 1
            continue
        if _is_mix(signatures[first : last + 1]):
            found.append(Cut(start.time, stop.time))
            first = last
        else:
            first += 1
    return found


def _end_of_change(signatures: Sequence[Signature], steps: Floats, first: int) -> int:
    """Return the frame at which a change that begins after `first` has ended, or gone on for too long."""
    last = first
    while (
        last < len(steps)
        and steps[last] > _MOVING
        and signatures[last + 1].time - signatures[first].time <= _DISSOLVE
    ):
        last += 1
    return last


def _is_mix(stretch: Sequence[Signature]) -> bool:
    before, after = stretch[0].tiny.ravel(), stretch[-1].tiny.ravel()
    change = after - before
    size = float(change @ change)
    shares, unexplained = [], []
    for middle in stretch[1:-1]:
        moved = middle.tiny.ravel() - before
        share = float(moved @ change) / max(size, 1e-9)
        rest = moved - share * change
        shares.append(share)
        unexplained.append(float(np.sqrt(rest @ rest / max(size, 1e-9))))
    rises = all(b > a - 0.05 for a, b in pairwise(shares))
    return rises and max(unexplained) < _MIXED and max(shares) > 0.15 and min(shares) < 0.85


def _drop_close(found: Sequence[Cut], begin: float) -> list[Cut]:
    """Return cuts that leave no shot shorter than the shortest: those closer together become one."""
    kept: list[Cut] = []
    for cut in found:
        if cut.end - begin >= _SHORTEST:
            kept.append(cut)
        elif kept:
            kept[-1] = Cut(min(kept[-1].end, cut.end), max(kept[-1].begin, cut.begin))
        else:
            continue
        begin = kept[-1].begin
    return kept


LONGEST = 300.0  # seconds of a shot, whoever is in it
_LONG = 20.0  # seconds from which a take is divided
_PART = 6.0  # seconds of a part, at least
_AWAY = 4.0  # seconds for which somebody is out of sight and still taken to be there


def split_take(begin: float, end: float, tracks: Sequence[Track]) -> list[float]:
    """Return the times at which a take from `begin` to `end` is divided, in order."""
    found: list[float] = []
    if end - begin >= _LONG:
        last = begin
        for time in sorted(_comings_and_goings(tracks)):
            if time - last >= _PART and end - time >= _PART:
                found.append(time)
                last = time
    return _with_longest(begin, end, found)


def _comings_and_goings(tracks: Sequence[Track]) -> list[float]:
    """Return when people come, and when they were last seen for a while."""
    found = []
    for track in tracks:
        times = [detection.time for detection in track.detections]
        stays = [(times[0], times[0])]
        for time in times[1:]:
            if time - stays[-1][1] > _AWAY:
                stays.append((time, time))
            else:
                stays[-1] = (stays[-1][0], time)
        # A face that was seen once, in passing, divides nothing.
        found += [time for stay in stays if stay[1] - stay[0] >= 1.0 for time in stay]
    return found


def _with_longest(begin: float, end: float, found: Sequence[float]) -> list[float]:
    times = [begin, *found, end]
    kept = list(found)
    for a, b in pairwise(times):
        count = int((b - a) // LONGEST)
        kept += [a + (b - a) * n / (count + 1) for n in range(1, count + 1)]
    return sorted(kept)
