"""Matches tagged regions with the faces that were found in a photo."""

from __future__ import annotations

from collections.abc import Sequence

from setnet.connect.tags.orientation import Frame, frames_of, turned
from setnet.connect.tags.photo_tags import PhotoTags
from setnet.connect.tags.region_list import FaceRegion, RegionList
from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library import LibraryPhoto

# Programs draw a face from the eyebrows to the chin, or a whole head: the overlap at which two boxes of one
# detector are the same face (0.5) is too much to ask for. Each having the other's centre tells neighbours
# apart.
_LEAST_OVERLAP = 0.2

FaceByRegion = dict[int, int]


class PhotoNames:
    """Who is who in a photo by its tags.

    Attributes
    ----------
    faces
        Pairs of a face's number, from 0, and a name; a face may have several, what counts more first.
    not_found
        Names of regions at which no face was found.
    problems
        What could not be used, a sentence each, after the index of the list in the tags.
    """

    def __init__(self, photo: LibraryPhoto, tags: PhotoTags) -> None:
        self.faces: list[tuple[int, str]] = []
        self.problems: list[tuple[int, str]] = []
        missing: dict[str, str] = {}
        for number, (_, found) in enumerate(tags.lists):
            named = [region for region in found.regions if region.name]
            try:
                _, matches = matched_regions(named, photo, found, tags.orientation)
            except InvalidInputError as error:
                self.problems.append((number, str(error)))
                continue
            self.faces += [(face, named[region].name) for region, face in sorted(matches.items())]
            for region, (name, _) in enumerate(named):
                if region not in matches:
                    missing.setdefault(name.casefold(), name)
        there = {name.casefold() for _, name in self.faces}
        self.not_found = [name for key, name in missing.items() if key not in there]


def matched_regions(
    regions: Sequence[FaceRegion], photo: LibraryPhoto, found: RegionList, orientation: int
) -> tuple[Frame, FaceByRegion]:
    """Return the frame that regions refer to, and the number of the face at each of them.

    Where the stored sides leave it open, that is the frame in which more regions are at a face, or are so
    more exactly. A frame they rule out is taken only if no region is at a face in the other.
    """
    frames = frames_of(found.size, photo.width, photo.height, orientation)
    tried = [(frame, _matches(_in_frame(regions, frame, orientation), photo)) for frame in frames]
    if len(frames) == 1 and orientation != 1 and not tried[0][1]:
        other: Frame = "stored" if frames[0] == "upright" else "upright"
        tried.append((other, _matches(_in_frame(regions, other, orientation), photo)))
    frame, best = max(tried, key=lambda each: (len(each[1]), sum(o for _, o in each[1].values())))
    return frame, {region: face for region, (face, _) in best.items()}


def _in_frame(regions: Sequence[FaceRegion], frame: Frame, orientation: int) -> list[Box]:
    return [turned(area, orientation) if frame == "stored" else area for _, area in regions]


def _matches(areas: Sequence[Box], photo: LibraryPhoto) -> dict[int, tuple[int, float]]:
    """Return face and overlap by area, one to one, the largest overlaps first."""
    faces = [in_fractions(face.box, photo) for face in photo.faces]
    pairs = sorted(
        (
            (area.overlap(face), -i, -j)
            for i, area in enumerate(areas)
            for j, face in enumerate(faces)
            if _has_centre(area, face) and _has_centre(face, area)
        ),
        reverse=True,
    )
    matches: dict[int, tuple[int, float]] = {}
    taken: set[int] = set()
    for share, i, j in pairs:
        if share >= _LEAST_OVERLAP and -i not in matches and -j not in taken:
            matches[-i] = -j, share
            taken.add(-j)
    return matches


def in_fractions(box: Box, photo: LibraryPhoto) -> Box:
    """Return a box in fractions of the upright photo's sides."""
    return Box(box.x0 / photo.width, box.y0 / photo.height, box.x1 / photo.width, box.y1 / photo.height)


def _has_centre(box: Box, other: Box) -> bool:
    x, y = (other.x0 + other.x1) / 2, (other.y0 + other.y1) / 2
    return box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1
