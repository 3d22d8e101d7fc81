"""Follows faces from look to look of a shot, by place and by descriptor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from setnet.video.people.sighting import Sighting

# Similarities of the default descriptor: of one person's faces about 0.67, of different people's 0.1.
_SAME_PLACE = 0.25  # overlap from which a face may be the one that was here at the last look
_NOT_ANOTHER = 0.25  # similarity that such a face needs: turned and blurred ones have little
_SAME_PERSON = 0.42  # similarity of one that is elsewhere
_CONTINUED = 2.5  # seconds: later, place means nothing


@dataclass
class Track:
    """One face, followed through a shot: at most one sighting for each look."""

    sightings: list[Sighting] = field(default_factory=list)

    @property
    def times(self) -> set[float]:
        """When it was seen."""
        return {sighting.time for sighting in self.sightings}

    @property
    def mean(self) -> NDArray[np.float32]:
        """The mean of its descriptors, weighted by quality, of length 1."""
        return weighted_mean(self.sightings)


def weighted_mean(sightings: Sequence[Sighting]) -> NDArray[np.float32]:
    """Return the mean descriptor of faces, the better ones counting more, of length 1."""
    told = told_by(sightings)
    weights = np.array([sighting.weight for sighting in told], np.float32)
    total = weights @ np.stack([sighting.face.descriptor for sighting in told])
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-9), np.float32)


def told_by(sightings: Sequence[Sighting]) -> Sequence[Sighting]:
    """Return the sightings that are described themselves; all, where the better pictures are elsewhere."""
    return [sighting for sighting in sightings if sighting.is_described] or sightings


def tracks_of(sightings: Iterable[Sequence[Sighting]]) -> list[Track]:
    """Return the tracks of one shot, given its sightings look by look."""
    tracks: list[Track] = []
    for seen in sightings:
        pairs = sorted(
            (-likeness, i, j)
            for i, track in enumerate(tracks)
            for j, sighting in enumerate(seen)
            if (likeness := _likeness(track, sighting)) > 0
        )
        taken: set[int] = set()
        given: set[int] = set()
        for _, i, j in pairs:
            if i not in taken and j not in given:
                taken.add(i)
                given.add(j)
                tracks[i].sightings.append(seen[j])
        tracks += [Track([sighting]) for j, sighting in enumerate(seen) if j not in given]
    return _merged(tracks)


def _likeness(track: Track, sighting: Sighting) -> float:
    """Return how surely a face goes on with a track; 0 when it does not."""
    last = track.sightings[-1]
    similarity = float(track.mean @ sighting.face.descriptor)
    place = 0.0
    if sighting.time - last.time <= _CONTINUED:
        place = last.face.box.overlap(sighting.face.box)
    if place >= _SAME_PLACE and similarity >= _NOT_ANOTHER:
        return similarity + place
    return similarity if similarity >= _SAME_PERSON else 0.0


def _merged(tracks: list[Track]) -> list[Track]:
    """Return tracks with those of one person together; two that were seen at once are two people."""
    tracks = list(tracks)
    while True:
        means = np.stack([track.mean for track in tracks]) if tracks else np.zeros((0, 1), np.float32)
        alike = np.triu(means @ means.T, 1)
        for place in np.argsort(-alike, axis=None).tolist():
            i, j = divmod(place, len(tracks))
            if alike[i, j] < _SAME_PERSON:
                return tracks
            if not tracks[i].times & tracks[j].times:
                both = sorted(tracks[i].sightings + tracks[j].sightings, key=lambda s: s.time)
                tracks = [track for n, track in enumerate(tracks) if n not in (i, j)] + [Track(both)]
                break
        else:
            return tracks
