"""A database with the tables of Immich that setnet reads, as they were before and after people had groups."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid5

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql

DIM = 512
SPACE = UUID(int=7)
OWNER = UUID(int=1)
READER = "reader"

BEFORE_GROUPS = """
CREATE TABLE person (id uuid PRIMARY KEY, "ownerId" uuid NOT NULL, name varchar NOT NULL DEFAULT '',
    "isHidden" boolean NOT NULL DEFAULT false);
CREATE TABLE asset_face (id uuid PRIMARY KEY, "assetId" uuid NOT NULL REFERENCES asset ON DELETE CASCADE,
    "personId" uuid REFERENCES person ON DELETE SET NULL, "deletedAt" timestamptz,
    "sourceType" text NOT NULL DEFAULT 'machine-learning');
"""
WITH_GROUPS = """
CREATE TABLE person_group (id uuid PRIMARY KEY);
CREATE TABLE person ("ownerId" uuid NOT NULL, "personGroupId" uuid NOT NULL REFERENCES person_group,
    name varchar NOT NULL DEFAULT '', "isHidden" boolean NOT NULL DEFAULT false,
    PRIMARY KEY ("ownerId", "personGroupId"));
CREATE TABLE asset_face (id uuid PRIMARY KEY, "assetId" uuid NOT NULL REFERENCES asset ON DELETE CASCADE,
    "personGroupId" uuid REFERENCES person_group ON DELETE SET NULL, "deletedAt" timestamptz,
    "isVisible" boolean NOT NULL DEFAULT true, "sourceType" text NOT NULL DEFAULT 'machine-learning');
"""
TABLES = """
CREATE EXTENSION vector;
CREATE TYPE asset_visibility_enum AS ENUM ('archive', 'timeline', 'hidden', 'locked');
CREATE TYPE assets_status_enum AS ENUM ('active', 'trashed', 'deleted');
CREATE TABLE asset (id uuid PRIMARY KEY, "ownerId" uuid NOT NULL, "originalFileName" varchar NOT NULL,
    "localDateTime" timestamptz NOT NULL, "deletedAt" timestamptz,
    status assets_status_enum NOT NULL DEFAULT 'active',
    visibility asset_visibility_enum NOT NULL DEFAULT 'timeline');
{people}
CREATE TABLE face_search ("faceId" uuid PRIMARY KEY REFERENCES asset_face ON DELETE CASCADE,
    embedding vector(512) NOT NULL);
"""


def uuid_of(name: str) -> UUID:
    return uuid5(SPACE, name)


def someone(name: str) -> NDArray[np.float32]:
    """Return where a person's faces lie."""
    row = np.random.default_rng(list(name.encode())).standard_normal(DIM)
    return np.asarray(row / np.linalg.norm(row), np.float32)


class ImmichDatabase:
    """Photos and people under names; a face is called "photo/number"."""

    def __init__(self, uri: str, groups: bool) -> None:
        self.uri, self._groups = uri, groups
        self._person = "personGroupId" if groups else "personId"
        self.run(TABLES.format(people=WITH_GROUPS if groups else BEFORE_GROUPS))

    def run(self, statement: str, values: Sequence[object] = ()) -> None:
        with psycopg.connect(self.uri, autocommit=True) as connection:
            if values:
                connection.execute(statement.encode(), values)
            else:
                connection.execute(statement.encode())

    def add_reader(self, uri: str) -> None:
        """Make a role that may SELECT from these tables and nothing else; `uri` is the owner's."""
        with psycopg.connect(uri, autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [READER]).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(READER)))
        self.run(f"GRANT SELECT ON asset, asset_face, face_search, person TO {READER}")

    def add_person(self, name: str, hidden: bool = False, owner: UUID = OWNER, group: str = "") -> None:
        key = uuid_of(group or name)
        if self._groups:
            self.run("INSERT INTO person_group VALUES (%s) ON CONFLICT DO NOTHING", [key])
            values = [owner, key, name, hidden]
            self.run(
                'INSERT INTO person ("ownerId", "personGroupId", name, "isHidden") VALUES (%s, %s, %s, %s)',
                values,
            )
        else:
            values = [key, owner, name, hidden]
            self.run('INSERT INTO person (id, "ownerId", name, "isHidden") VALUES (%s, %s, %s, %s)', values)

    def add_photo(
        self,
        photo: str,
        faces: Sequence[str],
        when: str = "2020-05-17 12:00:00+00",
        owner: UUID = OWNER,
    ) -> None:
        """Add a photo; a face "Anna" is hers, "Anna?" looks like her but was given to nobody."""
        self.run(
            'INSERT INTO asset (id, "ownerId", "originalFileName", "localDateTime") VALUES (%s, %s, %s, %s)',
            [uuid_of(photo), owner, f"{photo}.jpg", when],
        )
        for number, face in enumerate(faces):
            self.add_face(photo, number, face)

    def add_face(self, photo: str, number: int, face: str) -> None:
        key, name = uuid_of(f"{photo}/{number}"), face.rstrip("?")
        noise = np.random.default_rng([number, *photo.encode()]).standard_normal(DIM) * 0.5 / np.sqrt(DIM)
        row = 17.0 * (someone(name) + noise)  # Immich's descriptors are not of unit length
        person = None if face.endswith("?") else uuid_of(name)
        self.run(
            f'INSERT INTO asset_face (id, "assetId", "{self._person}") VALUES (%s, %s, %s)',
            [key, uuid_of(photo), person],
        )
        self.run("INSERT INTO face_search VALUES (%s, %s::real[]::vector)", [key, row.tolist()])

    def give(self, photo: str, number: int, person: str) -> None:
        """Say whose a face is."""
        statement = f'UPDATE asset_face SET "{self._person}" = %s WHERE id = %s'
        self.run(statement, [uuid_of(person), uuid_of(f"{photo}/{number}")])

    def change(self, photo: str, assignment: str) -> None:
        """Change a column of a photo."""
        self.run(f"UPDATE asset SET {assignment} WHERE id = %s", [uuid_of(photo)])
