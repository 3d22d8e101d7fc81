"""Reads faces and people from Immich's database: who is in which photo, then descriptors that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.connect.immich.immich_tables import ImmichTables
from setnet.connect.immich.known_people import ImmichPerson
from setnet.connect.postgres.connection import Connection, unit_vectors
from setnet.library import taken_number

NOBODY = "-"


@dataclass(frozen=True, slots=True)
class PhotoState:
    """What Immich says of a photo with faces.

    Attributes
    ----------
    stamp
        Changes whenever a face or a descriptor does.
    persons
        The person of each face, in the order of the faces' ids; "-" where Immich knows none.
    file, owner, taken
        The file's name, the id of the photo's owner, and the time by the camera's clock.
    """

    stamp: str
    persons: tuple[str, ...]
    file: str
    owner: str
    taken: float | None

    def attributes(self) -> dict[str, str | float | None]:
        """Return the state as attributes of an item; `of_attributes` reads it back."""
        who = " ".join(self.persons)
        return {
            "stamp": self.stamp,
            "persons": who,
            "file": self.file,
            "owner": self.owner,
            "taken": self.taken,
        }

    @classmethod
    def of_attributes(cls, stored: dict[str, Any]) -> PhotoState:
        """Return the state that attributes stand for."""
        persons = tuple(str(stored.get("persons", "")).split())
        file, owner = str(stored.get("file", "")), str(stored.get("owner", ""))
        return cls(str(stored.get("stamp", "")), persons, file, owner, stored.get("taken"))


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
        str(name): PhotoState(stamp, tuple(who.split()), _text(file), owner, _taken(taken))
        for name, stamp, who, file, owner, taken in connection.execute(select)
    }


def _text(file: str | None) -> str:
    return (file or "").replace("\0", "")


def _taken(when: datetime | None) -> float | None:
    return None if when is None else taken_number(when)


def read_descriptors_of(
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
