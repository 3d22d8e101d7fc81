"""A query for photos: who to look for (a name, a photo, a folder), conditions, and how many to return."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.durable import transaction
from setnet.errors import InvalidInputError, choice_error
from setnet.library.database import Database
from setnet.library.paths import display_path, folder_text, resolve_path
from setnet.library.person import (
    Person,
    PersonFaces,
    descriptor_from,
    find_person,
    person_at,
    read_examples,
    read_known_faces,
    saved_names,
    stack_examples,
)
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.photos import taken_number
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import Box, FaceSettings


@dataclass(frozen=True, slots=True, eq=False)
class QueryPerson:
    """A person of a query: a name and the (n, dim) descriptors of their examples.

    `confirmed`, `rejected` and `grouped` are faces of photos, each a photo's id and the number of the face in
    it from 0: they are this person's by what the user said, or an example; they are not; they are in a group
    that has the person's name, which is a guess. `tagged` are photos with the person but no face of theirs,
    with the box of the tag. A saved person has an `id`.
    """

    name: str
    descriptors: NDArray[np.float32]
    notes: tuple[str, ...] = ()
    confirmed: frozenset[tuple[str, int]] = frozenset()
    rejected: frozenset[tuple[str, int]] = frozenset()
    grouped: frozenset[tuple[str, int]] = frozenset()
    tagged: Mapping[str, Box | None] = field(default_factory=dict)
    id: str | None = None


def saved_person(database: Database, text: str) -> QueryPerson | None:
    """Return the saved person of a name, alias or id, looked up once, with the faces known to be theirs."""
    with database.reading() as db, transaction(db, "BEGIN"):
        row = find_person(db, text)
        if row is None:
            return None
        person, examples = person_at(db, row), read_examples(db, row)
        known = read_known_faces(db, row)[row]
    return QueryPerson(
        person.name,
        stack_examples(person.name, examples),
        id=person.id,
        **known._asdict(),
    )


def saved_people(database: Database) -> list[QueryPerson]:
    """Return all saved people in the order of their names, without pictures; some may have no example."""
    with database.reading() as db, transaction(db, "BEGIN"):
        people = db.execute("SELECT id, name, uid FROM people ORDER BY key").fetchall()
        examples = defaultdict[int, list[NDArray[np.float32]]](list)
        for person, stored in db.execute("SELECT person, descriptor FROM examples ORDER BY id"):
            examples[person].append(descriptor_from(stored))
        known, nothing = read_known_faces(db), PersonFaces()
    return [
        QueryPerson(name, np.array(examples[row], np.float32), id=uid, **known.get(row, nothing)._asdict())
        for row, name, uid in people
    ]


def person_in_file(text: str, people: Iterable[Person], settings: Callable[[], FaceSettings]) -> QueryPerson:
    """Return the person in a photo, or in a folder of photos of one person; raise for what is neither.

    Of a photo the largest face is taken, or with `group.jpg#3` the third from the left. `settings` is called
    only if faces must be detected.
    """
    from setnet.library.examples import examples_from, split_number

    path, number = split_number(text)
    if not path.exists():
        saved = saved_names(text, [person.name for person in people])
        raise InvalidInputError(f"{text!r} is neither a saved person nor a file or folder: {saved}")
    found, notes = examples_from([text], settings(), has_pictures=False)
    name = display_path(path.resolve().name if path.is_dir() else path.stem) + (
        f"#{number}" if number else ""
    )
    return QueryPerson(name, np.stack([e.descriptor for e in found]), tuple(notes))


def with_unique_names(people: Sequence[QueryPerson]) -> list[QueryPerson]:
    """Return the people under unique names: a second `anna` becomes `anna (2)`, if that is free."""
    taken = {person.name for person in people}
    seen: set[str] = set()
    different = []
    for person in people:
        name = person.name
        if name in seen:
            name = next(n for i in count(2) if (n := f"{person.name} ({i})") not in taken)
        seen.add(name)
        taken.add(name)
        different.append(replace(person, name=name))
    return different


KINDS = ("photo", "video")

FaceRange = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Which photos a query may return.

    Attributes
    ----------
    after, before
        Taken at `after` or later, and earlier than `before`, by the camera's clock, or by the file's name or
        time where EXIF has none; photos without a known time meet neither.
    folder
        In this folder or below it.
    faces
        Smallest and largest number of faces, either may be None.
    kind
        `photo`, or `video` for shots of videos; None for both.
    """

    after: datetime | None = None
    before: datetime | None = None
    folder: str | None = None
    faces: FaceRange | None = None
    kind: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in (None, *KINDS):
            raise choice_error("kind", self.kind, KINDS)

    @classmethod
    def parse(
        cls,
        after: str | None = None,
        before: str | None = None,
        folder: str | None = None,
        faces: str | FaceRange | None = None,
        kind: str | None = None,
    ) -> Conditions:
        """Return conditions from text, as `date_from` and `face_range_from` read it; empty means none.

        >>> Conditions.parse(after="2019-07", faces="4+")
        Conditions(after=datetime.datetime(2019, 7, 1, 0, 0), before=None, folder=None, faces=(4, None),
         kind=None)
        """
        return cls(
            after=date_from(after) if after else None,
            before=date_from(before) if before else None,
            folder=folder or None,
            faces=face_range_from(faces) if isinstance(faces, str) else faces,
            kind=kind or None,
        )

    def where(self) -> dict[str, Any] | None:
        """Return the conditions as the index takes them, or None if there are none."""
        where: dict[str, Any] = {}
        taken = _range(taken_number(self.after), "<", taken_number(self.before))
        if taken:
            where["taken"] = taken
        if self.faces is not None and (count := _range(self.faces[0], "<=", self.faces[1])):
            where["faces"] = count
        if self.folder is not None:
            where["folder"] = {"prefix": folder_text(resolve_path(self.folder))}
        if self.kind == "video":
            where["kind"] = self.kind
        return where or None

    def left_out(self, catalog: PhotoCatalog) -> set[str]:
        """Return the photos that conditions exclude and `where` cannot: items without an attribute meet none.

        Only shots have an attribute that says what they are.
        """
        return catalog.shot_ids() if self.kind == "photo" else set()

    def __str__(self) -> str:
        """Return the conditions in words; empty if there are none.

        >>> str(Conditions.parse(after="2019-07", faces="4+", kind="photo"))
        'taken from 2019-07-01 on, with 4 faces or more, photos only'
        """
        low, high = self.faces or (None, None)
        said = {
            f"taken from {_day(self.after)} on": self.after,
            f"taken before {_day(self.before)}": self.before,
            f"in {self.folder}": self.folder,
            f"with {pluralise(low or 0, 'face')} or more": low,
            f"with {pluralise(high or 0, 'face')} at most": high,
            f"{self.kind}s only": self.kind,
        }
        return ", ".join(text for text, value in said.items() if value is not None)

    def unmet_by(self, catalog: PhotoCatalog) -> list[str]:
        """Return why no photo of the library can meet the conditions; empty if one may."""
        why = []
        if self.folder is not None and not catalog.has_photos_below(resolve_path(self.folder)):
            folders = ", ".join(map(display_path, catalog.folders()))
            why.append(f"no photo in this library is in {self.folder}: its folders are {folders or 'none'}")
        if (self.after or self.before) and not catalog.counts().timed:
            why.append("no photo in this library has a known time: a condition on the time finds nothing")
        if self.kind == "video" and not catalog.counts().shots:
            why.append("no video is in this library: looking in videos only finds nothing")
        return why


def _day(time: datetime | None) -> str:
    return "" if time is None else time.isoformat(" ", "minutes").removesuffix(" 00:00")


def _range(low: float | None, below: str, high: float | None) -> dict[str, float]:
    limits = {">=": low, below: high}
    return {sign: value for sign, value in limits.items() if value is not None}


_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")


def date_from(text: str) -> datetime:
    """Return the beginning of a year, month or day, or an exact time.

    >>> date_from("2019"), date_from("2019-07"), date_from("2019-07-14 18:30")
    (datetime.datetime(2019, 1, 1, 0, 0), datetime.datetime(2019, 7, 1, 0, 0),
     datetime.datetime(2019, 7, 14, 18, 30))
    """
    try:
        if parts := _DATE.fullmatch(text.strip()):
            year, month, day = (int(p or 1) for p in parts.groups())
            return datetime(year, month, day)
        return datetime.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        raise InvalidInputError(
            f"{text!r} is not a date: write 2019, 2019-07, 2019-07-14 or 2019-07-14T18:30"
        ) from None


_FACES = re.compile(r"(\d{1,6})(?:(\+)|-(\d{1,6}))?")


def face_range_from(text: str) -> FaceRange:
    """Return the limits of a number of faces: `3` exactly, `2-5` a range, `4+` that many or more.

    >>> face_range_from("3"), face_range_from("2-5"), face_range_from("4+")
    ((3, 3), (2, 5), (4, None))
    """
    parts = _FACES.fullmatch(text.strip())
    if parts is None:
        raise InvalidInputError(f"{text!r} is not a number of faces: write 3, 2-5 or 4+")
    low = int(parts[1])
    high = None if parts[2] else int(parts[3] or low)
    if high is not None and high < low:
        raise InvalidInputError(f"{text!r} faces: the first number is the smaller one")
    return low, high


MODES = ("exact", "fast", "set")  # the engine's others are not for photos

PersonLike = str | QueryPerson | NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class PhotoQuery:
    """A query for photos that contain a set of people.

    Attributes
    ----------
    people, without
        The people to look for, and people who must not be in the photo: saved names, paths of photos or
        of folders of photos, descriptors ((dim,) or (n, dim) for n examples), or `QueryPerson`.
    k, offset
        How many photos to return, and how many of the best to skip before them.
    mode
        `exact` compares every face; `fast` ranks by one bit per dimension of each face, then re-ranks
        the best exactly; `set` uses set vectors alone.
    at_least
        How many of the people must be matched in a photo; with 0, photos with nobody of them follow.
    only
        Whether photos with anybody else in them are left out.
    sure
        Whether only sure matches count, for `at_least` and `only` too.
    min_similarity
        The similarity from which a face matches a person, in place of the one that follows from the number of
        examples and of faces searched. Which matches are sure does not change.
    totals
        Whether to count the photos with all of the people, all but one and so on down to one.
    newest
        Whether photos with equally many of the people are ordered by date, the latest taken first, and not
        by score.
    conditions
        Conditions on time, folder, number of faces, and whether it is a photo or a shot of a video.
    threads
        Threads of the search; one per core by default.
    """

    people: Sequence[PersonLike]
    without: Sequence[PersonLike] = ()
    k: int = 20
    offset: int = 0
    mode: str = "exact"
    at_least: int = 1
    only: bool = False
    sure: bool = False
    min_similarity: float | None = None
    totals: bool = False
    newest: bool = False
    conditions: Conditions | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if not len(self.people):
            raise InvalidInputError("nobody to look for: name a person or give a photo of one")
        if self.at_least > len(self.people):
            raise InvalidInputError(f"at least {self.at_least} of {len(self.people)} people cannot be met")
        if self.min_similarity is not None and not -1 <= self.min_similarity <= 1:
            raise InvalidInputError(
                f"min_similarity {self.min_similarity}: a number from -1 to 1 is expected"
            )
        if self.mode not in MODES:
            raise choice_error("mode", self.mode, MODES)


@dataclass(frozen=True, slots=True)
class SavedSearch:
    """A search under a name.

    Attributes
    ----------
    people, without
        Names of saved people, as they are called now; "somebody removed" for who is there no more.
    after, before, folder, min_faces, max_faces, kind
        Conditions on the photos, as `Conditions.parse` reads them.
    link_to
        A folder that has links to all photos of the search, after each index run too.
    """

    name: str
    people: tuple[str, ...]
    without: tuple[str, ...] = ()
    at_least: int = 1
    only: bool = False
    sure: bool = False
    min_similarity: float | None = None
    newest: bool = False
    after: str | None = None
    before: str | None = None
    folder: str | None = None
    min_faces: int | None = None
    max_faces: int | None = None
    kind: str | None = None
    link_to: str | None = None

    def query(self, k: int = 20) -> PhotoQuery:
        """Return the query for `Library.search`; what does not fit is an error."""
        faces = None if self.min_faces is self.max_faces is None else (self.min_faces, self.max_faces)
        return PhotoQuery(
            self.people,
            without=self.without,
            k=k,
            at_least=self.at_least,
            only=self.only,
            sure=self.sure,
            min_similarity=self.min_similarity,
            newest=self.newest,
            totals=True,
            conditions=Conditions.parse(self.after, self.before, self.folder, faces, self.kind),
        )
