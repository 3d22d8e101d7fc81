"""Names the faces of a library by the tags that other programs wrote."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from setnet.connect.tags.face_matching import PhotoNames
from setnet.connect.tags.photo_tags import TagReader
from setnet.errors import InvalidInputError
from setnet.library import (
    FaceConflict,
    FaceName,
    FacesNamed,
    Library,
    LibraryPhoto,
    checked_name,
    existing_paths,
    is_below,
)

OnProgress = Callable[[str, int, int], None]
_PROGRESS_STEP = 20  # photos


class TagConflict(NamedTuple):
    """A tagged face that is another person's already: it stays theirs."""

    photo: Path
    face: int
    name: str
    owner: str


@dataclass(slots=True)
class TagImport:
    """What tags of other programs did.

    Attributes
    ----------
    photos, tagged
        How many photos were looked at, and how many of them have a named region.
    people, new
        How many people got faces, and how many of them were not saved before.
    faces
        How many faces got a name, by the name they are tagged with.
    known, refused
        How many had it already, and of how many it was said before that they are not that person.
    not_found
        Photos and names of regions at which the library has no face.
    conflicts
        Tagged faces that are somebody else's.
    unreadable
        Files that could not be read, or not in full, and why.
    change
        The number of the change in the journal; None when nothing was new.
    """

    photos: int = 0
    tagged: int = 0
    people: int = 0
    new: int = 0
    faces: dict[str, int] = field(default_factory=dict)
    known: int = 0
    refused: int = 0
    not_found: list[tuple[Path, str]] = field(default_factory=list)
    conflicts: list[TagConflict] = field(default_factory=list)
    unreadable: list[tuple[Path, str]] = field(default_factory=list)
    change: int | None = None
    dry_run: bool = False

    @property
    def named(self) -> int:
        """How many faces got a name."""
        return sum(self.faces.values())

    @property
    def ok(self) -> bool:
        """Whether every file could be read."""
        return not self.unreadable

    def to_dict(self, path_text: Callable[[Path], str] = os.fsdecode) -> dict[str, Any]:
        """Return the report as values that JSON can hold; faces are numbered from 1, from the left."""
        return {
            "photos": self.photos,
            "tagged": self.tagged,
            "people": self.people,
            "new": self.new,
            "named": self.named,
            "faces": self.faces,
            "known": self.known,
            "refused": self.refused,
            "not_found": [{"photo": path_text(p), "name": name} for p, name in self.not_found],
            "conflicts": [c._asdict() | {"photo": path_text(c.photo)} for c in self.conflicts],
            "unreadable": [{"file": path_text(p), "reason": why} for p, why in self.unreadable],
            "change": self.change,
            "dry_run": self.dry_run,
        }


def import_tags(
    library: Library,
    folders: Sequence[str | os.PathLike[str]] = (),
    *,
    dry_run: bool = False,
    progress: OnProgress | None = None,
) -> TagImport:
    """Name the faces of a library's photos by their tags, in one change of the journal.

    A second call changes nothing. An interrupt on the way leaves the library as it was.

    Parameters
    ----------
    folders
        Folders, or single photos, to look at; by default all photos of the library.
    dry_run
        Only report what would be done.
    progress
        Called now and then with what is being done, how much of it is done, and of how much.
    """
    report = TagImport(dry_run=dry_run)
    said: list[FaceName] = []
    paths: dict[str, Path] = {}
    reader = TagReader()
    total = library.catalog.counts().photos
    for photo in _photos(library, folders):
        if progress is not None and report.photos % _PROGRESS_STEP == 0:
            progress("reading tags", report.photos, total)
        report.photos += 1
        found = _names(photo, reader, report)
        if found:
            paths[photo.id] = photo.path
            said += found
    _take(report, library.name_faces(said, dry_run=dry_run, progress=progress), paths)
    return report


def _photos(library: Library, folders: Sequence[str | os.PathLike[str]]) -> Iterator[LibraryPhoto]:
    roots = existing_paths(folders)
    for photo in library.catalog.all_photos():
        is_shot = photo.start is not None  # videos have no face tags
        if not is_shot and (not roots or any(is_below(photo.stored_path, root) for root in roots)):
            yield photo


def _names(photo: LibraryPhoto, reader: TagReader, report: TagImport) -> list[FaceName]:
    """Return what the tags of a photo call its faces, and note what cannot be used."""
    tags = reader.read(photo.path)
    report.unreadable += tags.problems
    if not tags.lists:
        return []
    names = PhotoNames(photo, tags)
    report.unreadable += [(tags.lists[number][0], reason) for number, reason in names.problems]
    report.not_found += [(photo.path, name) for name in names.not_found]
    report.tagged += bool(names.faces or names.not_found)
    found = []
    for face, name in names.faces:
        try:
            found.append(FaceName(checked_name(name), photo.id, face))
        except InvalidInputError as error:
            report.unreadable.append((photo.path, str(error)))
    return found


def _take(report: TagImport, done: FacesNamed, paths: dict[str, Path]) -> None:
    report.people, report.new, report.change = len(done.people), done.new, done.change
    report.known, report.refused = done.known, done.refused
    report.faces = dict(sorted(Counter(said.name for said in done.named).items()))
    report.conflicts = [_conflict(conflict, paths) for conflict in done.conflicts]


def _conflict(conflict: FaceConflict, paths: dict[str, Path]) -> TagConflict:
    said = conflict.said
    return TagConflict(paths[said.photo_id], said.face + 1, said.name, conflict.owner)
