"""`ImmichIndex`: an index of the faces of an Immich server, kept beside it and searched by its own people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.connect.database import Database
from setnet.connect.immich_sync import (
    NOBODY,
    ImmichPerson,
    ImmichTables,
    PhotoState,
    Progress,
    SyncReport,
    find_person,
    read_people,
    read_stored_people,
    stored_photos,
    update_index,
)
from setnet.durable import replace_file, storage_errors
from setnet.engine import Hit, SetIndex
from setnet.engine.query import KnownPair
from setnet.errors import InvalidInputError, NotAnIndexError, StorageError
from setnet.heads import Logistic
from setnet.library import Conditions
from setnet.library.photos import taken_time


@dataclass(frozen=True, slots=True)
class ImmichHit:
    """A photo with its score and who is in it.

    Attributes
    ----------
    id
        Immich's id of the photo.
    score
        About the number of wanted people in it.
    people
        The wanted people found, by name; one that Immich does not name there, but whose face is alike, has a
        question mark.
    file, taken
        The file's name, and when it was taken (ISO, the camera's clock; empty where that is not known).
    link
        Where Immich's page shows the photo.
    """

    id: str
    score: float
    people: tuple[str, ...]
    file: str
    taken: str
    link: str

    def to_dict(self) -> dict[str, Any]:
        """Return the hit for JSON, its score rounded to six digits."""
        return {**asdict(self), "score": round(self.score, 6)}


def _link_to(photo: str, base: str) -> str:
    """Return the address of a photo on Immich's page; its path alone without a base.

    >>> _link_to("77aa", "https://photos.example/")
    'https://photos.example/photos/77aa'
    """
    return f"{base.rstrip('/')}/photos/{photo}"


ABOUT = "immich.json"
INDEX = "index"
# Immich takes two faces for one person's from a cosine similarity of 0.5 on (its default setting).
LOGISTIC = Logistic(20.0, -10.0)
MAX_EXAMPLES = 200  # faces that a person is known by


class ImmichIndex:
    """The faces of an Immich server in a folder of their own; searching needs neither the server nor a model.

    Immich decides who a face belongs to. A face that it gives to nobody counts for a person from the
    similarity on at which Immich itself would take it for theirs.

    Examples
    --------
    >>> ImmichIndex.sync("immich", "postgresql://reader@localhost/immich")      # doctest: +SKIP
    >>> with ImmichIndex("immich") as index:                                   # doctest: +SKIP
    ...     for hit in index.search(["Anna", "Ben"], link_base="https://photos.example"):
    ...         print(hit.people, hit.link)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / ABOUT).is_file():
            raise NotAnIndexError(f"{self.path} holds no faces of Immich: `setnet immich sync` fetches them")
        self._about = _read_about(self.path)
        self._index = SetIndex.open(self.path / INDEX, read_only=True)

    @staticmethod
    def sync(
        path: str | Path, uri: str, progress: Progress = lambda done, photos: None, *, schema: str = "public"
    ) -> SyncReport:
        """Bring the index in a folder up to date with Immich's database, which is only read.

        Descriptors are fetched of new photos and of those whose faces changed. The connection string is not
        stored, nor is anything that it holds but the addresses of server and database.

        Parameters
        ----------
        path
            The index's folder; made if there is none.
        uri
            Connection string of a role that may SELECT from Immich's tables.
        progress
            Called with the number of photos fetched so far, and of all to fetch.
        """
        root = Path(path)
        database = Database(uri)
        try:
            with database.reading() as connection:
                tables = ImmichTables.of(connection, database.name, schema)
                people = read_people(connection, tables)
                with _open_index(root, tables.dim) as index:
                    report = update_index(index, connection, tables, len(people), progress)
        finally:
            database.close()
        about = {"database": database.name, "people": [person.to_dict() for person in people]}
        with storage_errors(root):
            replace_file(root / ABOUT, json.dumps(about).encode())
        return report

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def __enter__(self) -> ImmichIndex:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._index)

    @property
    def people(self) -> list[ImmichPerson]:
        """Immich's people, those in most photos first."""
        return self._people_in(self._photos.values())

    def _people_in(self, photos: Iterable[PhotoState]) -> list[ImmichPerson]:
        counts = Counter(who for state in photos for who in set(state.persons))
        return read_stored_people(self._about["people"], counts)

    def _people_of(self, owner: str) -> list[ImmichPerson]:
        """Return who is in photos of one of Immich's users, so that two users may each know an Anna."""
        owners = Counter(state.owner for state in self._photos.values())
        if owner not in owners:
            known = ", ".join(f"{each} ({photos:,} photos)" for each, photos in owners.most_common(10))
            raise InvalidInputError(f"no photo belongs to the user {owner!r}; owners are {known or 'none'}")
        people = self._people_in(state for state in self._photos.values() if state.owner == owner)
        return [person for person in people if person.photos]

    def search(
        self,
        people: Sequence[str],
        k: int = 20,
        *,
        at_least: int = 1,
        only: bool = False,
        without: Sequence[str] = (),
        conditions: Conditions | None = None,
        owner: str = "",
        link_base: str = "",
    ) -> list[ImmichHit]:
        """Return the photos with most of the people, best first.

        Parameters
        ----------
        people, without
            Names or ids of Immich's people who shall be in the photos, and who shall not.
        k
            How many photos at most.
        at_least
            Least number of the people in a photo.
        only
            Leave out photos with any other face.
        conditions
            When the photos were taken.
        owner
            Id of the user of Immich whose photos are searched; by default those of all users.
        link_base
            Address of Immich's page, for the links.
        """
        if not people:
            raise InvalidInputError("nobody is asked for: give at least one person")
        everybody = self._people_of(owner) if owner else self.people
        wanted = [find_person(everybody, text) for text in people]
        unwanted = [find_person(everybody, text) for text in without]
        if twice := [p for p, times in Counter([*wanted, *unwanted]).items() if times > 1]:
            raise InvalidInputError(f"{twice[0].name} is asked for twice")
        where = (conditions.where() if conditions else None) or {}
        if owner:
            where["owner"] = owner
        hits = self._index.search(
            np.stack([self._vector(person) for person in wanted]),
            k,
            at_least=at_least,
            only=only,
            without=np.stack([self._vector(person) for person in unwanted]) if unwanted else None,
            where=where,
            known=self._known_pairs([person.id for person in (*wanted, *unwanted)]),
        )
        return [self._to_hit(hit, wanted, link_base) for hit in hits]

    @cached_property
    def _photos(self) -> dict[str, PhotoState]:
        return stored_photos(self._index)

    def _vector(self, person: ImmichPerson) -> NDArray[np.float32]:
        """Return the mean of a person's faces, whose similarity with a face is the mean of theirs."""
        photos = [name for name, state in self._photos.items() if person.id in state.persons]
        if not photos:
            raise InvalidInputError(
                f"no face that Immich has given to {person.name} is in the index: `setnet immich sync` "
                "fetches new ones; faces tagged by hand have no descriptor"
            )
        step = -(-len(photos) // MAX_EXAMPLES)
        rows = [
            self._index.elements(name)[self._photos[name].persons.index(person.id)] for name in photos[::step]
        ]
        return np.asarray(np.mean(rows, axis=0), np.float32)

    def _known_pairs(self, ids: Sequence[str]) -> dict[str, list[KnownPair]]:
        """Return what Immich says of each face that it has given to somebody."""
        return {
            name: [
                KnownPair(number, face, who == wanted)
                for face, who in enumerate(state.persons)
                if who != NOBODY
                for number, wanted in enumerate(ids)
            ]
            for name, state in self._photos.items()
            if any(who != NOBODY for who in state.persons)
        }

    def _to_hit(self, hit: Hit, wanted: Sequence[ImmichPerson], link_base: str) -> ImmichHit:
        state = self._photos[hit.id]
        found = []
        for match in hit.matches:
            person = wanted[int(match.query_element)]
            if state.persons[match.element] == person.id:
                found.append(person.name)
            elif match.similarity >= self._index.logistic.threshold:
                found.append(f"{person.name}?")
        taken = taken_time(state.taken)
        when = taken.isoformat(sep=" ", timespec="seconds") if taken else ""
        return ImmichHit(hit.id, hit.score, tuple(found), state.file, when, _link_to(hit.id, link_base))


def _open_index(root: Path, dim: int) -> SetIndex:
    """Open the index for writing, made if there is none; an error when its faces are of another dimension."""
    if (root / INDEX / "catalog.sqlite").is_file():
        index = SetIndex.open(root / INDEX)
        if index.shape.dim != dim:
            index.close()
            raise InvalidInputError(
                f"{root} holds {index.shape.dim}-D faces, Immich has {dim}-D ones now: delete the folder, "
                "then fetch them again"
            )
        return index
    with storage_errors(root, "cannot make an index: "):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if {entry.name for entry in root.iterdir()} - {INDEX, ABOUT, f"{ABOUT}.new"}:
        raise InvalidInputError(f"{root} is not empty and holds no faces of Immich: choose another folder")
    return SetIndex.create(root / INDEX, dim, logistic=LOGISTIC, head="none")


def _read_about(root: Path) -> dict[str, Any]:
    try:
        with storage_errors(root):
            about = json.loads((root / ABOUT).read_bytes())
        return {"database": str(about["database"]), "people": [dict(person) for person in about["people"]]}
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{root / ABOUT} is damaged ({error!r:.80}): delete it, and `setnet immich sync` writes it again"
        ) from None
