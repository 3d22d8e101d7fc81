"""Divides long takes where the people in them change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from setnet.video.people.tracks import Track

LONGEST = 300.0  # seconds of a shot, whoever is in it
_LONG = 20.0  # seconds from which a take is divided
_PART = 6.0  # seconds of a part, at least
_AWAY = 4.0  # seconds for which somebody is out of sight and still taken to be there


def divisions(begin: float, end: float, tracks: Sequence[Track]) -> list[float]:
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
        times = [sighting.time for sighting in track.sightings]
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
