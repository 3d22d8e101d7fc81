"""Follows faces by place from look to look: of a few pictures of a face only the best is described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from setnet.faces import Face, FaceSettings, FoundFace, described
from setnet.video.people.sighting import Sighting, face_weight

_SAME_PLACE = 0.4  # overlap with the face at the last look, from which it is taken for the same
_ALONE = 0.1  # overlap with any other: people who cross are told apart by descriptors
_CONTINUED = 2.2  # seconds: later, somebody else may be at the place
_PICTURES = 3  # followed at most; then the face is described again, whoever it is


@dataclass(eq=False)
class _Stretch:
    """Some looks at one face: their numbers, and the pictures, which repeat while nothing moves."""

    looks: list[tuple[int, FoundFace]] = field(default_factory=list)

    @property
    def last(self) -> FoundFace:
        return self.looks[-1][1]

    @property
    def is_full(self) -> bool:
        return len({id(face) for _, face in self.looks}) >= _PICTURES

    @property
    def best(self) -> FoundFace:
        return max((face for _, face in self.looks), key=lambda face: face_weight(face.quality))


class Following:
    """Faces look by look, described by their best pictures.

    Pictures are kept until a face is described: at most three of each that is in sight.
    """

    def __init__(self, settings: FaceSettings) -> None:
        self._settings = settings
        self._looks: list[tuple[float, list[Sighting]]] = []
        self._going_on: list[_Stretch] = []

    @property
    def time(self) -> float:
        """The time of the last look."""
        return self._looks[-1][0]

    @property
    def count(self) -> int:
        """How many faces there were at the last look; -1 before the first."""
        return len(self._going_on) if self._looks else -1

    def add(self, time: float, found: Sequence[FoundFace], *, is_new: bool) -> None:
        """Add the faces of a look; nobody is followed into a shot that `is_new`."""
        going_on: list[_Stretch] = []
        near = not is_new and bool(self._looks) and time - self.time <= _CONTINUED
        for face in found:
            before = self._before(face, found) if near else None
            going_on.append(_Stretch() if before is None else before)
        self._end([stretch for stretch in self._going_on if stretch not in going_on])
        self._looks.append((time, []))
        for stretch, face in zip(going_on, found, strict=True):
            stretch.looks.append((len(self._looks) - 1, face))
        self._going_on = going_on

    def repeat(self, time: float) -> None:
        """Add a look at which the picture is that of the last one."""
        self._looks.append((time, []))
        for stretch in self._going_on:
            stretch.looks.append((len(self._looks) - 1, stretch.last))

    def sightings(self) -> list[tuple[float, list[Sighting]]]:
        """Return the faces of all looks so far, from left to right, with their times."""
        self._end(self._going_on)
        self._going_on = []
        for _, seen in self._looks:
            seen.sort(key=lambda sighting: sighting.face.box.x0 + sighting.face.box.x1)
        return self._looks

    def _before(self, face: FoundFace, found: Sequence[FoundFace]) -> _Stretch | None:
        """Return the stretch that a face goes on with, if there is no doubt about it."""
        overlaps = [face.box.overlap(stretch.last.box) for stretch in self._going_on]
        if sum(overlap > _ALONE for overlap in overlaps) != 1 or max(overlaps) < _SAME_PLACE:
            return None
        stretch = self._going_on[overlaps.index(max(overlaps))]
        rivals = sum(stretch.last.box.overlap(other.box) > _ALONE for other in found)
        return stretch if rivals == 1 and not stretch.is_full else None

    def _end(self, stretches: Sequence[_Stretch]) -> None:
        faces = described([stretch.best for stretch in stretches], self._settings)
        for stretch, best in zip(stretches, faces, strict=True):
            chosen, is_told = stretch.best, False
            for number, face in stretch.looks:
                time, seen = self._looks[number]
                is_first = face is chosen and not is_told
                is_told = is_told or is_first
                quality = face.quality
                whole = Face(face.box, face.landmarks, quality.score, quality, best.descriptor)
                seen.append(Sighting(time, whole, is_first))
