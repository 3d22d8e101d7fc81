"""Groups of photos that are copies of one photograph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from setnet.library.duplicates.disjoint_sets import DisjointSets


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Two or more copies of one photograph.

    Attributes
    ----------
    photos
        The largest first; of equally large ones in the order of paths.
    pixels
        How many pixels each of them has.
    """

    photos: tuple[Path, ...]
    pixels: tuple[int, ...]

    @classmethod
    def of(cls, pixels: dict[Path, int]) -> DuplicateGroup:
        """Return the group of these photos, given with their numbers of pixels."""
        ordered = sorted(pixels, key=lambda path: (-pixels[path], path))
        return cls(tuple(ordered), tuple(pixels[path] for path in ordered))


def merged_groups(groups: Iterable[DuplicateGroup]) -> list[DuplicateGroup]:
    """Return groups that share no photo: those that do are merged, directly or through others.

    The groups are in the order of the paths of their first photos, whatever the order they are given in.
    """
    sets = DisjointSets[Path]()
    pixels: dict[Path, int] = {}
    for group in groups:
        pixels.update(zip(group.photos, group.pixels, strict=True))
        for photo in group.photos:
            sets.link(group.photos[0], photo)
    merged = [DuplicateGroup.of({path: pixels[path] for path in paths}) for paths in sets.groups()]
    return sorted(merged, key=lambda group: group.photos[0])
