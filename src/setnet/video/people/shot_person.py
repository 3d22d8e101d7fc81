"""One element per person and shot, from all looks at the person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from setnet.faces import Face
from setnet.video.people.sighting import Sighting
from setnet.video.people.tracks import Track, told_by, weighted_mean

_OUTLIER = 0.6  # of the usual similarity to the mean: a face below it is another one, or hardly a face
_ENOUGH_LOOKS = 4  # at a shot, after which a poor face that was seen once is taken for a mistake
_POOR = 0.15


@dataclass(frozen=True, eq=False, slots=True)
class ShotPerson:
    """A person in a shot.

    Attributes
    ----------
    face
        The best picture of the person: where it is at the time `at`, and the descriptor of the whole track.
    at
        Seconds from the beginning of the video.
    seen
        Seconds for which the person is seen.
    track
        (looks, 5) float32: time, x0, y0, x1, y1 of each look at the person.
    """

    face: Face
    at: float
    seen: float
    track: NDArray[np.float32]


def shot_people(tracks: Sequence[Track], looks: int, apart: float) -> list[ShotPerson]:
    """Return the people of a shot that was looked at so many times, from left to right.

    `apart` is the usual time between two looks, for which a person seen at one of them is taken to be there.
    """
    found = [_person(track, apart) for track in tracks if not _is_mistake(track, looks)]
    return sorted(found, key=lambda person: (person.face.box.x0 + person.face.box.x1, person.at))


def _is_mistake(track: Track, looks: int) -> bool:
    return (
        looks >= _ENOUGH_LOOKS
        and len(track.sightings) == 1
        and (track.sightings[0].weight < _POOR or track.sightings[0].face.score < 0.8)
    )


def _person(track: Track, apart: float) -> ShotPerson:
    kept = _without_outliers(told_by(track.sightings))
    best = max(kept, key=lambda sighting: (sighting.weight, -sighting.time))
    face = best.face
    whole = Face(face.box, face.landmarks, face.score, face.quality, weighted_mean(kept))
    boxes = [(s.time, *s.face.box) for s in track.sightings]
    times = [s.time for s in track.sightings]
    gaps = [min(b - a, 2 * apart) for a, b in pairwise(times)]
    return ShotPerson(whole, best.time, round(sum(gaps) + apart, 3), np.array(boxes, np.float32))


def _without_outliers(sightings: Sequence[Sighting]) -> list[Sighting]:
    """Return the faces that are like the others, where there are enough to tell."""
    if len(sightings) < 3:
        return list(sightings)
    mean = weighted_mean(sightings)
    alike = np.array([float(mean @ sighting.face.descriptor) for sighting in sightings])
    lowest = _OUTLIER * float(np.median(alike))
    return [sighting for sighting, value in zip(sightings, alike, strict=True) if value >= lowest]
