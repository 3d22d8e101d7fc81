"""Finds where shots end: cuts, fades through black or white, and dissolves of one shot into the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from setnet.video.shots.signature import Signature

CUT = 0.22  # distance of looks on both sides of a cut, at least
_STEADY = 3.0  # times what looks nearby differ: in shaken pictures all of them differ
_NEARBY = 4  # looks on both sides
_BLANK = 9.0  # contrast of a black or white picture
_FADING = 1.15  # times the contrast of a look that the one further from a blank picture has
_DISSOLVE = 2.0  # seconds that a dissolve takes at most
_MIXED = 0.42  # what a mix of both shots leaves unexplained of a picture in the middle, at most
_MOVING = 0.05  # distance from which something is going on
_SHORTEST = 0.4  # seconds of a shot

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Limit:
    """The end of a shot and the beginning of the next; the same time, unless one dissolves into the other."""

    end: float
    begin: float


def limits(signatures: Sequence[Signature]) -> list[Limit]:
    """Return the limits between shots, in order."""
    if len(signatures) < 2:
        return []
    found = _blanks(signatures)
    steps = np.array([b.distance(a) for a, b in pairwise(signatures)])
    gaps = np.array([max(1e-3, b.time - a.time) for a, b in pairwise(signatures)])
    for place in np.flatnonzero(steps > CUT).tolist():
        if _is_cut(steps, gaps, place):
            found.append(Limit(signatures[place].time, signatures[place + 1].time))
    found += _dissolves(signatures, steps, found)
    return _apart(sorted(found, key=lambda limit: limit.begin), signatures[0].time)


def may_be_cut(a: Signature, b: Signature) -> bool:
    """Return whether two looks, some pictures apart, may be of different shots."""
    return a.distance(b) > 0.7 * CUT


def _is_cut(steps: Floats, gaps: Floats, place: int) -> bool:
    # Looks that are further from each other differ more, by movement alone.
    expected = steps * np.minimum(1, np.sqrt(gaps[place] / gaps))
    nearby = np.concatenate(
        [expected[max(0, place - _NEARBY) : place], expected[place + 1 : place + 1 + _NEARBY]]
    )
    usual = float(np.median(nearby)) if len(nearby) else 0.0
    return bool(steps[place] > _STEADY * usual)


def _blanks(signatures: Sequence[Signature]) -> list[Limit]:
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
            found.append(Limit(signatures[first].time, signatures[place].time))
    return found


def _dissolves(
    signatures: Sequence[Signature],
    steps: Floats,
    known: Sequence[Limit],
) -> list[Limit]:
    """Return where each picture of a stretch is a mix of the pictures at its ends, which differ."""
    found: list[Limit] = []
    first = 0
    while first < len(signatures) - 2:
        last = _end_of_change(signatures, steps, first)
        start, stop = signatures[first], signatures[last]
        overlaps = any(limit.begin > start.time and limit.end < stop.time for limit in known)
        if last - first < 2 or overlaps or start.distance(stop) < CUT:
            first += 1
            continue
        if _is_mix(signatures[first : last + 1]):
            found.append(Limit(start.time, stop.time))
            first = last
        else:
            first += 1
    return found


def _end_of_change(
    signatures: Sequence[Signature],
    steps: Floats,
    first: int,
) -> int:
    """Return the look at which a change that begins after `first` has ended, or gone on for too long."""
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


def _apart(found: Sequence[Limit], begin: float) -> list[Limit]:
    """Return limits that leave no shot shorter than the shortest: those closer together become one."""
    kept: list[Limit] = []
    for limit in found:
        if limit.end - begin >= _SHORTEST:
            kept.append(limit)
        elif kept:
            kept[-1] = Limit(min(kept[-1].end, limit.end), max(kept[-1].begin, limit.begin))
        else:
            continue
        begin = kept[-1].begin
    return kept
