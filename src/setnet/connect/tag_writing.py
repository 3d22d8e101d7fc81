"""Writes who is in photos to `.xmp` sidecars, for other programs; photos are never changed."""

from __future__ import annotations

import os
import stat
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from setnet.addresses import is_external
from setnet.connect.face_regions import (
    FaceRegion,
    Frame,
    RegionList,
    area_in_picture,
    rotate_back,
    stored_size,
)
from setnet.connect.face_tags import (
    OnProgress,
    PhotoTags,
    TagConflict,
    TagReader,
    find_sidecars,
    match_regions,
    read_limited,
    to_fractions,
)
from setnet.connect.xmp import LARGEST_XMP, MWG, add_regions, new_sidecar
from setnet.durable import replace_file
from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library import Library, LibraryPhoto, StoredFace
from setnet.library.face_references import SAME_FACE
from setnet.library.person_matcher import NamedPeople

_FaceNames = dict[int, str]


def _photos_with_names(
    library: Library, only: Collection[str] = ()
) -> Iterator[tuple[LibraryPhoto, _FaceNames]]:
    """Yield every photo with the names of its faces that are confirmed, examples or sure matches.

    A face is one person's, the one it exceeds the threshold of by most; `only` says whose names are wanted.
    Where the user tagged somebody and there is no face, the photo has one at the box of the tag.
    """
    people = NamedPeople.of(library)
    examples: defaultdict[str, list[tuple[Box, str]]] = defaultdict(list)
    tagged: defaultdict[str, list[tuple[Box, str]]] = defaultdict(list)
    for person in library.people:
        for content, box in library.people.tagged_contents(person):
            if box is not None and (not only or person.name in only):
                tagged[content.hex()].append((box, person.name))
        for example in library.people.examples(person):
            if example.content is not None and example.box is not None:
                examples[example.content.hex()].append((example.box, person.name))
    for photo in library.photos.all_photos():
        if photo.start is not None or is_external(photo.stored_path):
            continue  # regions are for pictures that have a file here
        names: _FaceNames = {}
        vectors = library.photos.descriptors(photo.id) if photo.faces else ()
        for number, (face, vector) in enumerate(zip(photo.faces, vectors, strict=True)):
            known = [name for box, name in examples[photo.content] if box.overlap(face.box) >= SAME_FACE]
            identity = people.identify(vector, face.quality, (photo.id, number))
            name = known[0] if known else identity.name if identity.sure else ""
            if name and (not only or name in only):
                names[number] = name
        for box, name in tagged[photo.content]:
            if not any(box.overlap(face.box) >= SAME_FACE for face in photo.faces):
                names[len(photo.faces)] = name
                at_tag = StoredFace(len(photo.faces), *box, 1.0, b"", "{}")
                photo = photo._replace(faces=(*photo.faces, at_tag))
        yield photo, names


_PROGRESS_STEP = 20  # photos


@dataclass(slots=True)
class TagsWritten:
    """What was written to sidecars.

    Attributes
    ----------
    photos
        How many photos have a named face.
    created, updated
        Sidecars that are new, and those that regions were added to.
    regions
        How many regions were written, by name.
    unchanged
        How many photos have all their names in a sidecar or in themselves already.
    kept
        Sidecars that exist and lack names; `update` would add them.
    conflicts
        Faces that are called otherwise there; nothing is written of them.
    failed
        Files that could not be read or written, and why.
    """

    photos: int = 0
    created: list[Path] = field(default_factory=list)
    updated: list[Path] = field(default_factory=list)
    regions: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    kept: list[Path] = field(default_factory=list)
    conflicts: list[TagConflict] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        """Whether every file could be read and written."""
        return not self.failed

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold; faces are numbered from 1, from the left."""
        return {
            "photos": self.photos,
            "created": list(map(os.fsdecode, self.created)),
            "updated": list(map(os.fsdecode, self.updated)),
            "regions": dict(sorted(self.regions.items())),
            "unchanged": self.unchanged,
            "kept": list(map(os.fsdecode, self.kept)),
            "conflicts": [c._asdict() | {"photo": os.fsdecode(c.photo)} for c in self.conflicts],
            "failed": [{"file": os.fsdecode(p), "reason": why} for p, why in self.failed],
            "dry_run": self.dry_run,
        }


def write_tags(
    library: Library,
    people: Sequence[str] = (),
    *,
    update: bool = False,
    dry_run: bool = False,
    progress: OnProgress | None = None,
) -> TagsWritten:
    """Write the named faces of a library's photos as MWG regions to sidecars, such as `photo.jpg.xmp`.

    Named are faces that are confirmed, examples or sure matches, and boxes that the user tagged. Each sidecar
    is written whole or not at all.

    Parameters
    ----------
    people
        Whose faces; by default everybody's.
    update
        Add to sidecars that exist, and keep a backup of each beside it; by default they are left as they are.
    dry_run
        Only report what would be done.
    progress
        Called now and then with what is being done, how much of it is done, and of how much.
    """
    wanted = [library.people.get(name).name for name in people]
    if not len(library.people):
        raise InvalidInputError("nobody is saved yet: `setnet people name` and `people add` give names")
    report, reader = TagsWritten(dry_run=dry_run), TagReader()
    total = library.photos.counts().photos
    for number, (photo, names) in enumerate(_photos_with_names(library, wanted)):
        if progress is not None and number % _PROGRESS_STEP == 0:
            progress("writing tags", number, total)
        if names:
            report.photos += 1
            _write(photo, names, reader.read(photo.path), report, update)
    return report


def _write(
    photo: LibraryPhoto, names: _FaceNames, tags: PhotoTags, report: TagsWritten, update: bool
) -> None:
    """Bring the sidecar of a photo up to date, or note why that is not done."""
    if not photo.path.is_file():
        report.failed.append((photo.path, "is not there: nothing was written beside it"))
        return
    sidecar = next((path for path in find_sidecars(photo.path) if path.exists()), None)
    try:
        missing = _missing(photo, names, tags, report)
        if not missing:
            report.unchanged += 1
        elif sidecar is None:
            place = find_sidecars(photo.path)[0]
            inside = _mwg_list(tags, photo.path)
            frame = _frame(inside, photo, tags.orientation)
            regions = _regions(photo, missing, frame, tags.orientation)
            size = _size(photo, frame, tags.orientation)
            # Programs read a sidecar in the place of what is in the photo: that has to be in it too.
            data = new_sidecar([*(inside.regions if inside else ()), *regions], size)
            _put_sidecar(place, data, None, report)
            report.created.append(place)
            report.regions.update(missing.values())
        elif not update:
            report.kept.append(sidecar)
        else:
            before = read_limited(sidecar, LARGEST_XMP) or b""
            frame = _frame(_mwg_list(tags, sidecar), photo, tags.orientation)
            regions = _regions(photo, missing, frame, tags.orientation)
            data = add_regions(before, regions, _size(photo, frame, tags.orientation))
            _put_sidecar(sidecar, data, before, report)
            report.updated.append(sidecar)
            report.regions.update(missing.values())
    except InvalidInputError as error:
        report.failed.append((sidecar or photo.path, str(error)))
    except OSError as error:
        reason = f"cannot be written ({error.strerror or error})"
        report.failed.append((sidecar or find_sidecars(photo.path)[0], reason))


def _missing(photo: LibraryPhoto, names: _FaceNames, tags: PhotoTags, report: TagsWritten) -> _FaceNames:
    """Return the names that no MWG region has; a face that is called otherwise is a conflict."""
    called: dict[int, set[str]] = {}
    for _, found in tags.lists:
        if found.form == MWG.form:
            named = [region for region in found.regions if region.name]
            _, matches = match_regions(named, photo, found, tags.orientation)
            for region, face in matches.items():
                called.setdefault(face, set()).add(named[region].name)
    missing: _FaceNames = {}
    for face, name in names.items():
        there = called.get(face, set())
        if not there:
            missing[face] = name
        elif name.casefold() not in {other.casefold() for other in there}:
            report.conflicts.append(TagConflict(photo.path, face + 1, name, ", ".join(sorted(there))))
    return missing


def _mwg_list(tags: PhotoTags, file: Path) -> RegionList | None:
    return next((found for path, found in tags.lists if path == file and found.form == MWG.form), None)


def _frame(found: RegionList | None, photo: LibraryPhoto, orientation: int) -> Frame:
    """Return the frame of regions that are there; without any, that which most programs expect."""
    if found is None or not found.regions:
        return "stored"
    return match_regions(found.regions, photo, found, orientation)[0]


def _size(photo: LibraryPhoto, frame: Frame, orientation: int) -> tuple[int, int]:
    size = photo.width, photo.height
    return stored_size(*size, orientation) if frame == "stored" else size


def _regions(photo: LibraryPhoto, names: _FaceNames, frame: Frame, orientation: int) -> list[FaceRegion]:
    regions = []
    for face, name in names.items():
        area = area_in_picture(*to_fractions(photo.faces[face].box, photo))
        regions.append(FaceRegion(name, rotate_back(area, orientation) if frame == "stored" else area))
    return regions


def _put_sidecar(sidecar: Path, data: bytes, before: bytes | None, report: TagsWritten) -> None:
    """Write a sidecar as a whole, after a backup of what was there."""
    if report.dry_run:
        return
    place, mode = sidecar.resolve(), 0o666
    if before is not None:
        mode = stat.S_IMODE(place.stat().st_mode)
        _back_up(place, before, mode)
    _replace(place, data, mode)


def _back_up(sidecar: Path, data: bytes, mode: int) -> None:
    """Keep the former sidecar beside the new one, under a name that nothing has."""
    for number in count(1):
        backup = sidecar.with_name(f"{sidecar.name}.bak{'' if number == 1 else number}")
        if not backup.exists():
            _replace(backup, data, mode)
            return


def _replace(file: Path, data: bytes, mode: int) -> None:
    """Write a file as a whole, and leave no half of it in a folder of photos."""
    try:
        replace_file(file, data, mode)
    except BaseException:
        with suppress(OSError):
            file.with_name(f"{file.name}.new").unlink()
        raise
