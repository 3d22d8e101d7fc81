"""Names the faces of a library by the tags that other programs wrote.

Tags of a photo are found in sidecars, in the photo itself and in Picasa's file of its folder, and matched
with the faces that were found in the photo.
"""

from __future__ import annotations

import os
import stat
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.connect.face_regions import FaceRegion, Frame, RegionList, possible_frames, rotate
from setnet.connect.photo_names import (
    LARGEST_JSON,
    PhotoNames,
    name_words,
    read_takeout,
    takeout_file,
    takeout_files,
)
from setnet.connect.picasa import FILE_NAMES, LARGEST, picasa_regions
from setnet.connect.xmp import LARGEST_XMP, names_in_xmp, regions_in_xmp
from setnet.errors import InvalidInputError, PhotoError
from setnet.faces import Box
from setnet.faces.photo import PhotoHeader, read_header
from setnet.library import FaceConflict, FaceName, FacesNamed, Library, LibraryPhoto
from setnet.library.name_solver import PhotoWithNames, solve_names
from setnet.library.paths import existing_paths, is_below
from setnet.library.person import checked_name, find_person, spelling_hints

_KEPT_FOLDERS = 64
_SUFFIXES = (".xmp", ".XMP")

PicasaFile = dict[str, tuple[Path, RegionList]]


class PhotoTags(NamedTuple):
    """The face tags of a photo.

    Attributes
    ----------
    lists
        Each with the file it is in; those of sidecars come first, as they are edited last.
    orientation
        The EXIF orientation of the photo, from 1 to 8.
    problems
        Files that could not be read, or not in full, and why.
    names
        Who is in the photo, without a place, and texts that may say so.
    """

    lists: list[tuple[Path, RegionList]]
    orientation: int
    problems: list[tuple[Path, str]]
    names: PhotoNames


class TagReader:
    """Reads the face tags of photos, one after the other; files of Picasa's are kept for the next photo."""

    def __init__(self) -> None:
        self._folders: OrderedDict[Path, tuple[PicasaFile, list[str]]] = OrderedDict()

    def read(self, photo: Path) -> PhotoTags:
        """Return the face tags of a photo."""
        tags = PhotoTags([], 1, [], PhotoNames())
        for sidecar in find_sidecars(photo):
            try:
                data = read_limited(sidecar, LARGEST_XMP)
                lists = [] if data is None else _read_xmp(data, tags)
            except InvalidInputError as error:
                tags.problems.append((sidecar, str(error)))
            else:
                tags.lists.extend((sidecar, found) for found in lists)
        header = self._read_embedded(photo, tags)
        picasa, takeout = self._in_folder(photo.parent, tags)
        if (inside := picasa.get(photo.name.lower())) is not None:
            tags.lists.append(inside)
        if (beside := takeout_file(photo.name, takeout)) is not None:
            _read_beside(photo.with_name(beside), tags)
        for file, found in tags.lists:
            tags.problems.extend((file, problem) for problem in found.problems)
        return tags._replace(orientation=header.orientation)

    def _read_embedded(self, photo: Path, tags: PhotoTags) -> PhotoHeader:
        header = PhotoHeader(None, 1)
        try:
            header = read_header(photo)
            lists = [] if header.xmp is None else _read_xmp(header.xmp, tags)
        except (InvalidInputError, PhotoError) as error:
            reason = str(error).removeprefix(f"{os.fsencode(photo).decode('utf-8', 'replace')}: ")
            tags.problems.append((photo, reason))
        else:
            tags.lists.extend((photo, found) for found in lists)
        return header

    def _in_folder(self, folder: Path, tags: PhotoTags) -> tuple[PicasaFile, list[str]]:
        """Return what Picasa's files in a folder say, by photo in lower case, and the JSON files there."""
        known = self._folders.get(folder)
        if known is not None:
            self._folders.move_to_end(folder)
            return known
        found: PicasaFile = {}
        for name in FILE_NAMES:
            file = folder / name
            try:
                data = read_limited(file, LARGEST)
                regions = {} if data is None else picasa_regions(data)
            except InvalidInputError as error:
                tags.problems.append((file, str(error)))
            else:
                found |= {photo: (file, each) for photo, each in regions.items()}
        self._folders[folder] = found, takeout_files(folder)
        if len(self._folders) > _KEPT_FOLDERS:
            self._folders.popitem(last=False)
        return self._folders[folder]


def _read_xmp(data: bytes, tags: PhotoTags) -> list[RegionList]:
    """Return the lists of regions in XMP, and add the names without a place."""
    tags.names.add(names_in_xmp(data))
    return regions_in_xmp(data)


def _read_beside(file: Path, tags: PhotoTags) -> None:
    """Add the names in a photo's JSON file."""
    try:
        data = read_limited(file, LARGEST_JSON)
        said = None if data is None else read_takeout(data)
    except InvalidInputError as error:
        tags.problems.append((file, str(error)))
    else:
        tags.names.add(said or PhotoNames())


def find_sidecars(photo: Path) -> list[Path]:
    """Return what the sidecar of a photo may be called, the least ambiguous name first.

    >>> [path.name for path in find_sidecars(Path("a/b.jpg"))]
    ['b.jpg.xmp', 'b.jpg.XMP', 'b.xmp', 'b.XMP']
    """
    return [photo.with_name(stem + suffix) for stem in (photo.name, photo.stem) for suffix in _SUFFIXES]


def read_limited(file: Path, largest: int) -> bytes | None:
    """Return the bytes of a file, None where there is none; what is too large or no file is an error."""
    try:
        # without waiting, as a pipe without a writer would block
        with open(file, "rb", opener=lambda p, flags: os.open(p, flags | getattr(os, "O_NONBLOCK", 0))) as f:
            info = os.fstat(f.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise InvalidInputError("is no regular file")
            if info.st_size > largest:
                raise InvalidInputError(f"larger than {largest >> 20} MB: left unread")
            return f.read(largest + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidInputError(f"cannot be read ({error.strerror or error})") from error


# Programs draw a face from the eyebrows to the chin, or a whole head: the overlap at which two boxes of one
# detector are the same face (0.5) is too much to ask for. Each having the other's centre tells neighbours
# apart.
_MIN_OVERLAP = 0.2

FaceByRegion = dict[int, int]


class NamedRegions:
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
                _, matches = match_regions(named, photo, found, tags.orientation)
            except InvalidInputError as error:
                self.problems.append((number, str(error)))
                continue
            self.faces += [(face, named[region].name) for region, face in sorted(matches.items())]
            for region, (name, _) in enumerate(named):
                if region not in matches:
                    missing.setdefault(name.casefold(), name)
        there = {name.casefold() for _, name in self.faces}
        self.not_found = [name for key, name in missing.items() if key not in there]


def match_regions(
    regions: Sequence[FaceRegion], photo: LibraryPhoto, found: RegionList, orientation: int
) -> tuple[Frame, FaceByRegion]:
    """Return the frame that regions refer to, and the number of the face at each of them.

    Where the stored sides leave it open, that is the frame in which more regions are at a face, or are so
    more exactly. A frame they rule out is taken only if no region is at a face in the other.
    """
    frames = possible_frames(found.size, photo.width, photo.height, orientation)
    tried = [(frame, _matches(_in_frame(regions, frame, orientation), photo)) for frame in frames]
    if len(frames) == 1 and orientation != 1 and not tried[0][1]:
        other: Frame = "stored" if frames[0] == "upright" else "upright"
        tried.append((other, _matches(_in_frame(regions, other, orientation), photo)))
    frame, best = max(tried, key=lambda each: (len(each[1]), sum(o for _, o in each[1].values())))
    return frame, {region: face for region, (face, _) in best.items()}


def _in_frame(regions: Sequence[FaceRegion], frame: Frame, orientation: int) -> list[Box]:
    return [rotate(area, orientation) if frame == "stored" else area for _, area in regions]


def _matches(areas: Sequence[Box], photo: LibraryPhoto) -> dict[int, tuple[int, float]]:
    """Return face and overlap by area, one to one, the largest overlaps first."""
    faces = [to_fractions(face.box, photo) for face in photo.faces]
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
        if share >= _MIN_OVERLAP and -i not in matches and -j not in taken:
            matches[-i] = -j, share
            taken.add(-j)
    return matches


def to_fractions(box: Box, photo: LibraryPhoto) -> Box:
    """Return a box in fractions of the upright photo's sides."""
    return Box(box.x0 / photo.width, box.y0 / photo.height, box.x1 / photo.width, box.y1 / photo.height)


def _has_centre(box: Box, other: Box) -> bool:
    x, y = (other.x0 + other.x1) / 2, (other.y0 + other.y1) / 2
    return box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1


OnProgress = Callable[[str, int, int], None]
_PROGRESS_STEP = 20  # photos


class TagConflict(NamedTuple):
    """A tagged face that is another person's already: it stays theirs."""

    photo: Path
    face: int
    name: str
    owner: str


class NameSuggestion(NamedTuple):
    """A face that may be a name's, with the probability; faces are numbered from 1."""

    photo: Path
    face: int
    name: str
    probability: float


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
    without_boxes
        How many photos have names but no places, and how many faces got one of these names all the same.
    hints
        New names that may be other spellings of a person's, a sentence each.
    suggestions
        Faces that may be a name's, but others may be too: `people confirm` names them.
    change
        The number of the change in the journal; None when nothing was new.
    """

    photos: int = 0
    tagged: int = 0
    without_boxes: int = 0
    solved: int = 0
    people: int = 0
    new: int = 0
    faces: dict[str, int] = field(default_factory=dict)
    known: int = 0
    refused: int = 0
    not_found: list[tuple[Path, str]] = field(default_factory=list)
    conflicts: list[TagConflict] = field(default_factory=list)
    unreadable: list[tuple[Path, str]] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    suggestions: list[NameSuggestion] = field(default_factory=list)
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

    def to_dict(self) -> dict[str, Any]:
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
            "not_found": [{"photo": os.fsdecode(p), "name": name} for p, name in self.not_found],
            "conflicts": [c._asdict() | {"photo": os.fsdecode(c.photo)} for c in self.conflicts],
            "unreadable": [{"file": os.fsdecode(p), "reason": why} for p, why in self.unreadable],
            "without_boxes": self.without_boxes,
            "solved": self.solved,
            "hints": self.hints,
            "suggestions": [s._asdict() | {"photo": os.fsdecode(s.photo)} for s in self.suggestions],
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
    report, reader = TagImport(dry_run=dry_run), TagReader()
    said: list[FaceName] = []
    open_photos: list[_OpenPhoto] = []
    paths: dict[str, Path] = {}
    total = library.photos.counts().photos
    for photo in _photos(library, folders):
        if progress is not None and report.photos % _PROGRESS_STEP == 0:
            progress("reading tags", report.photos, total)
        report.photos += 1
        tags = reader.read(photo.path)
        found = _read_names(photo, tags, report)
        said += found
        paths[photo.id] = photo.path
        if tags.names.names or tags.names.texts:
            open_photos.append(_OpenPhoto(photo, tags.names, {one.face: one.name for one in found}))
    said += _solve(library, open_photos, said, report, progress)
    _take(report, library.people.name_faces(said, dry_run=dry_run, progress=progress), paths)
    with library._database.reading() as db:
        doubtful = {one.name for one in report.suggestions if find_person(db, one.name) is None}
        report.hints += spelling_hints(db, sorted(doubtful))
    return report


class _OpenPhoto(NamedTuple):
    """A photo with names that have no place, and the names of faces that have one."""

    photo: LibraryPhoto
    names: PhotoNames
    named: dict[int, str]


def _solve(
    library: Library,
    photos: Sequence[_OpenPhoto],
    said: Sequence[FaceName],
    report: TagImport,
    progress: OnProgress | None,
) -> list[FaceName]:
    """Return whose faces names without a place are; what is not sure becomes a suggestion.

    Faces with a place, and examples that come from other photos, say what names look like.
    """
    people = {
        name_words(name): name for photo in photos for name in (*photo.names.names, *photo.named.values())
    }
    looks: dict[str, list[NDArray[np.float32]]] = {}
    contents = {photo.photo.stored_hash for photo in photos}
    for person in library.people:
        people |= {name_words(name): person.name for name in (*person.aliases, person.name)}
        looks[person.name.casefold()] = [
            example.descriptor
            for example in library.people.examples(person)
            if example.content not in contents
        ]
    for one in said:
        looks.setdefault(one.name.casefold(), []).append(library.photos.descriptors(one.photo_id)[one.face])
    open_photos, places = [], []
    for photo, names, named in photos:
        there = {name.casefold() for name in named.values()}
        missing = []
        for name in dict.fromkeys(people.get(name_words(name), name) for name in names.known(people)):
            try:
                name = checked_name(name)
            except InvalidInputError as error:
                report.unreadable.append((photo.path, str(error)))
            else:
                if name.casefold() not in there:
                    missing.append(name)
        faces = [face for face in range(len(photo.faces)) if face not in named]
        report.without_boxes += bool(missing)
        if missing and faces:
            open_photos.append(PhotoWithNames(tuple(missing), library.photos.descriptors(photo.id)[faces]))
            places.append((photo, faces))
    known = {
        name: np.stack(found)
        for name in {name for photo in open_photos for name in photo.names}
        if (found := looks.get(name.casefold()))
    }
    solved = []
    for found_face in solve_names(open_photos, library._matchers.model, known, progress):
        photo, faces = places[found_face.photo]
        face, name, probability = faces[found_face.face], found_face.name, round(found_face.probability, 3)
        if found_face.sure:
            solved.append(FaceName(name, photo.id, face))
        else:
            report.suggestions.append(NameSuggestion(photo.path, face + 1, name, probability))
    report.solved = len(solved)
    return solved


def _photos(library: Library, folders: Sequence[str | os.PathLike[str]]) -> Iterator[LibraryPhoto]:
    roots = existing_paths(folders)
    for photo in library.photos.all_photos():
        is_shot = photo.start is not None  # videos have no face tags
        if not is_shot and (not roots or any(is_below(photo.stored_path, root) for root in roots)):
            yield photo


def _read_names(photo: LibraryPhoto, tags: PhotoTags, report: TagImport) -> list[FaceName]:
    """Return what the tags of a photo call its faces, and note what cannot be used."""
    report.unreadable += tags.problems
    if not tags.lists:
        return []
    names = NamedRegions(photo, tags)
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
    report.known, report.refused, report.hints = done.known, done.rejected, done.hints
    report.faces = dict(sorted(Counter(said.name for said in done.named).items()))
    report.conflicts = [_conflict(conflict, paths) for conflict in done.conflicts]


def _conflict(conflict: FaceConflict, paths: dict[str, Path]) -> TagConflict:
    said = conflict.said
    return TagConflict(paths[said.photo_id], said.face + 1, said.name, conflict.owner)
