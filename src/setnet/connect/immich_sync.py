"""Reads the faces and people of an Immich server and brings an index up to date with them.

Nothing is written to Immich. What is gone leaves the index first, then what is new or changed comes.

Read from the sources of Immich: ``asset``, ``asset_face``, ``face_search`` and ``person`` have these names
since v1.137.0, and the columns used here are the same in v1.137.0, v2.0.0, v2.5.0 and v3.1.0 (``isVisible``
came with v2.5.0). After v3.1.0 (commit 11b1aa5ecf, cluster groups) the person of a face is in
``personGroupId``, before in ``personId``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Composable, Composed, Identifier

from setnet.connect.database import Connection, unit_vectors
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, NotAnIndexError, near_names
from setnet.library.photos import taken_number

_NEEDED = {
    "asset": ("id", "ownerId", "originalFileName", "localDateTime", "deletedAt", "status", "visibility"),
    "asset_face": ("id", "assetId", "deletedAt"),
    "face_search": ("faceId", "embedding"),
    "person": ("ownerId", "name", "isHidden"),
}


@dataclass(frozen=True, slots=True)
class ImmichTables:
    """Where things are in one version of Immich's database.

    Attributes
    ----------
    schema
        The schema of its tables.
    person_of_face, person_key
        The column of ``asset_face`` with a face's person, and the column of ``person`` it refers to.
    has_hidden_faces
        Whether ``asset_face`` says that a face is not visible.
    dim
        Dimension of the descriptors.
    """

    schema: str
    person_of_face: str
    person_key: str
    has_hidden_faces: bool
    dim: int

    @classmethod
    def of(cls, connection: Connection, shown: str, schema: str = "public") -> ImmichTables:
        """Return what this database has; an error names what is missing."""
        columns = _columns(connection, schema)
        if not columns:
            raise NotAnIndexError(
                f"{shown} has no tables of Immich in schema {schema!r}, or this role may not read them: "
                f"expected {', '.join(_NEEDED)}"
            )
        person = "personGroupId" if "personGroupId" in columns.get("asset_face", ()) else "personId"
        key = "personGroupId" if person == "personGroupId" else "id"
        needed = {
            **_NEEDED,
            "asset_face": (*_NEEDED["asset_face"], person),
            "person": (*_NEEDED["person"], key),
        }
        for table, names in needed.items():
            missing = [name for name in names if name not in columns.get(table, ())]
            if missing:
                raise NotAnIndexError(
                    f"{shown}: Immich's table {table!r} has no column {missing[0]!r} that this role may "
                    "read: grant it, or use an Immich from v1.137.0 on"
                )
        return cls(schema, person, key, "isVisible" in columns["asset_face"], _dim(connection, schema, shown))

    def sql(self, statement: str, **parts: Composable) -> Composed:
        """Return a statement in which {asset}, {face}, {search} and {person} stand for the tables.

        {visible} is the condition that a face may be seen: of a photo that is in the timeline, neither
        archived, locked, hidden nor in the trash.
        """
        named = {"asset": "asset", "face": "asset_face", "search": "face_search", "person": "person"}
        tables = {key: Identifier(self.schema, name) for key, name in named.items()}
        seen = ' AND f."isVisible"' if self.has_hidden_faces else ""
        visible = SQL(
            'f."deletedAt" IS NULL' + seen + " AND a.\"deletedAt\" IS NULL AND a.status::text = 'active' "
            "AND a.visibility::text = 'timeline'"
        )
        columns = {
            "person_of_face": Identifier("f", self.person_of_face),
            "person_key": Identifier("p", self.person_key),
        }
        return SQL(statement).format(**tables, **columns, visible=visible, **parts)


def _columns(connection: Connection, schema: str) -> dict[str, set[str]]:
    """Return the columns that this role may read, by table."""
    select = (
        "SELECT c.relname, a.attname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "WHERE n.nspname = %s AND c.relname = ANY(%s) AND has_column_privilege(c.oid, a.attnum, 'SELECT')"
    )
    found: dict[str, set[str]] = {}
    for table, column in connection.execute(select, [schema, list(_NEEDED)]):
        found.setdefault(str(table), set()).add(str(column))
    return found


def _dim(connection: Connection, schema: str, shown: str) -> int:
    """Return the dimension that the column of descriptors is declared with."""
    select = (
        "SELECT a.atttypmod FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = 'face_search' AND a.attname = 'embedding'"
    )
    row = connection.execute(select, [schema]).fetchone()
    if row is None or int(row[0]) < 1:
        raise NotAnIndexError(f"{shown}: the descriptors of Immich's faces have no fixed dimension")
    return int(row[0])


@dataclass(frozen=True, slots=True)
class ImmichPerson:
    """A person of Immich: the id, the names that users gave, and in how many photos they are.

    ``hidden`` says that a user hid them from Immich's list of people.
    """

    id: str
    names: tuple[str, ...] = ()
    hidden: bool = False
    photos: int = 0

    @property
    def name(self) -> str:
        """What the person is called; the id of one without a name."""
        return " / ".join(self.names) or self.id

    def to_dict(self) -> dict[str, Any]:
        """Return the person for JSON."""
        return {**asdict(self), "name": self.name}


def find_person(people: Iterable[ImmichPerson], text: str) -> ImmichPerson:
    """Return the one person with an id or a name; upper and lower case are alike.

    >>> find_person([ImmichPerson("8f1c", ("Anna",)), ImmichPerson("77aa", ("Ben",))], "anna").id
    '8f1c'
    """
    known = list(people)
    key = text.strip().casefold()
    found = [p for p in known if p.id == key] or [
        p for p in known if key in {name.strip().casefold() for name in p.names}
    ]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(f"{p.id} ({p.photos} photos)" for p in found)
        raise InvalidInputError(f"{len(found)} people are called {text!r}: name one by id, {ids}")
    names = [name for p in known for name in p.names if not p.hidden]
    near = near_names(text, names) or names
    shown = f"people are {', '.join(map(repr, near))[:400]}" if near else "Immich has named nobody yet"
    raise InvalidInputError(f"Immich knows nobody called {text!r}: {shown} (`setnet immich people`)")


def read_stored_people(stored: Iterable[Mapping[str, Any]], photos: Mapping[str, int]) -> list[ImmichPerson]:
    """Return people as `to_dict` wrote them, with the number of their photos, most photos first."""
    people = [
        ImmichPerson(
            str(p["id"]), tuple(map(str, p["names"])), bool(p["hidden"]), photos.get(str(p["id"]), 0)
        )
        for p in stored
    ]
    return sorted(people, key=lambda p: (-p.photos, p.name.casefold(), p.id))


NOBODY = "-"


@dataclass(frozen=True, slots=True)
class PhotoState:
    """What Immich says of a photo with faces.

    Attributes
    ----------
    stamp
        Changes whenever a face or a descriptor does.
    who
        The person of each face, in the order of the faces' ids; "-" where Immich knows none.
    file, owner, taken
        The file's name, the id of the photo's owner, and the time by the camera's clock.
    """

    stamp: str = ""
    who: str = ""
    file: str = ""
    owner: str = ""
    taken: float | None = None

    @property
    def persons(self) -> list[str]:
        """The person of each face."""
        return self.who.split()


def stored_photos(index: SetIndex) -> dict[str, PhotoState]:
    """Return what the attributes of an index say of its photos."""
    stored: dict[str, Mapping[str, Any]] = {item.id: item.attributes for item in index}
    return {name: PhotoState(**facts) for name, facts in stored.items()}


def read_photos(connection: Connection, tables: ImmichTables) -> dict[str, PhotoState]:
    """Return all photos with visible faces, without their descriptors.

    The stamp is made from the faces' ids and the versions of their descriptors' rows, so that it needs no
    clock, and notices rows that are gone as well as new ones.
    """
    select = tables.sql(
        "SELECT a.id::text, md5(string_agg(f.id::text || ':' || s.xmin::text, ',' ORDER BY f.id)), "
        "string_agg(coalesce({person_of_face}::text, '-'), ' ' ORDER BY f.id), "
        'a."originalFileName", a."ownerId"::text, a."localDateTime" AT TIME ZONE \'UTC\' '
        'FROM {face} f JOIN {search} s ON s."faceId" = f.id JOIN {asset} a ON a.id = f."assetId" '
        "WHERE {visible} GROUP BY a.id"
    )
    return {
        str(name): PhotoState(
            stamp, who, (file or "").replace("\0", ""), owner, None if taken is None else taken_number(taken)
        )
        for name, stamp, who, file, owner, taken in connection.execute(select)
    }


def read_descriptors(
    connection: Connection, tables: ImmichTables, photos: Sequence[str]
) -> dict[str, NDArray[np.float32]]:
    """Return the descriptors of photos' visible faces at unit length, in the order of the faces' ids."""
    select = tables.sql(
        "SELECT a.id::text, array_send(s.embedding::real[]) "
        'FROM {face} f JOIN {search} s ON s."faceId" = f.id JOIN {asset} a ON a.id = f."assetId" '
        "WHERE {visible} AND a.id = ANY(%s::uuid[]) ORDER BY a.id, f.id"
    )
    found: dict[str, list[bytes]] = {}
    for name, sent in connection.execute(select, [list(photos)], binary=True):
        found.setdefault(str(name), []).append(sent)
    # 20 bytes about the array, then the size and the value of each number
    return {name: unit_vectors(rows, start=20, step=2) for name, rows in found.items()}


def read_people(connection: Connection, tables: ImmichTables) -> list[ImmichPerson]:
    """Return Immich's people; one that several users share has the names that they gave."""
    select = tables.sql(
        "SELECT {person_key}::text, array_agg(DISTINCT p.name) FILTER (WHERE p.name <> ''), "
        'bool_and(p."isHidden") FROM {person} p GROUP BY 1 ORDER BY 1'
    )
    return [
        ImmichPerson(str(key), tuple(names or ()), bool(hidden))
        for key, names, hidden in connection.execute(select)
    ]


BATCH = 1000  # photos in one transaction of the index

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a synchronisation did, in photos; ``people`` is how many people Immich has.

    ``added`` are new, ``changed`` have other faces, ``renamed`` have the same faces but of other people or
    other facts, ``removed`` are gone, hidden or in the trash. ``skipped`` have a face whose descriptor is not
    usable.
    """

    added: int
    changed: int
    renamed: int
    removed: int
    skipped: int
    photos: int
    people: int


def update_index(
    index: SetIndex, connection: Connection, tables: ImmichTables, people: int, progress: Progress
) -> SyncReport:
    """Make the index hold what Immich has, some photos at a time.

    Interrupted at any moment, it has done a part, and the next run does the rest.
    """
    stored, wanted = stored_photos(index), read_photos(connection, tables)
    new, gone = sorted(wanted.keys() - stored.keys()), sorted(stored.keys() - wanted.keys())
    both = [name for name in sorted(stored.keys() & wanted.keys()) if stored[name] != wanted[name]]
    changed = [name for name in both if stored[name].stamp != wanted[name].stamp]
    renamed = [name for name in both if stored[name].stamp == wanted[name].stamp]
    for some in _batches(gone):
        index.delete(some)
    for some in _batches(renamed):
        _add(index, some, [index.elements(name) for name in some], wanted)
    fresh, skipped = [*new, *changed], 0
    for number, some in enumerate(_batches(fresh)):
        found = read_descriptors(connection, tables, some)
        good = [name for name in some if _usable(found.get(name), wanted[name], tables.dim)]
        _add(index, good, [found[name] for name in good], wanted)
        skipped += len(some) - len(good)
        progress(min((number + 1) * BATCH, len(fresh)), len(fresh))
    return SyncReport(len(new), len(changed), len(renamed), len(gone), skipped, len(index), people)


def _add(
    index: SetIndex, names: Sequence[str], faces: list[NDArray[np.float32]], wanted: dict[str, PhotoState]
) -> None:
    if names:
        counts = [len(rows) for rows in faces]
        index.add(names, np.concatenate(faces), counts, [asdict(wanted[name]) for name in names])


def _usable(faces: NDArray[np.float32] | None, state: PhotoState, dim: int) -> bool:
    """Whether there is a descriptor for each face, and none of NaN or of zeros."""
    if faces is None or faces.shape != (len(state.persons), dim):
        return False
    return bool(np.isfinite(faces).all() and (faces != 0).any(axis=1).all())


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(names), BATCH):
        yield names[at : at + BATCH]
