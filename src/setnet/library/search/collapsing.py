"""Hits that show the same moment as one: identical copies of a file, and bursts of photos."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from setnet.library.photos import LibraryPhoto, PhotoHit

_BURST = timedelta(seconds=2)  # between two photos of a burst; most cameras write whole seconds


def collapsed(hits: Sequence[PhotoHit]) -> list[PhotoHit]:
    """Return the hits without those that show what a better one shows; each hit says which these are.

    `copies` of a hit have the same content. Its `others` were taken within seconds of it or of each other, in
    the same folder, and have the same people of the query in them. Shots of videos have neither, and photos
    whose time is not known to the second no others.
    """
    bursts = _bursts(hits)
    place: dict[Hashable, int] = {}  # of the hit that stands for a content, or for a burst
    kept: list[PhotoHit] = []
    for number, hit in enumerate(hits):
        photo = hit.photo
        content = photo.stored_hash if photo.kind == "photo" else photo.id
        if (at := place.get(content)) is not None:
            kept[at] = kept[at]._replace(copies=(*kept[at].copies, photo))
        elif number in bursts and (at := place.get(bursts[number])) is not None:
            kept[at] = kept[at]._replace(others=(*kept[at].others, photo))
        else:
            at = len(kept)
            kept.append(hit)
        place[content] = at
        if number in bursts:
            place.setdefault(bursts[number], at)
    return kept


def _bursts(hits: Sequence[PhotoHit]) -> dict[int, tuple[str, int]]:
    """Return the burst that hits belong to, by the hits' number."""
    moments: defaultdict[Hashable, list[tuple[datetime, int]]] = defaultdict(list)
    for number, hit in enumerate(hits):
        if (time := _exact_time(hit.photo)) is not None:
            moments[hit.path.parent, frozenset(hit.people)].append((time, number))
    found: dict[int, tuple[str, int]] = {}
    for sequence in moments.values():
        for (before, earlier), (time, number) in pairwise(sorted(sequence)):
            if time - before <= _BURST:
                found[number] = found.setdefault(earlier, ("burst", earlier))
    return found


def _exact_time(photo: LibraryPhoto) -> datetime | None:
    """Return when a photo was taken, if that is known to the second: files copied together have one time."""
    if photo.kind != "photo" or photo.taken is None or photo.taken_from == "file":
        return None
    is_day = photo.taken_from == "name" and photo.taken.time() == datetime.min.time()
    return None if is_day else photo.taken
