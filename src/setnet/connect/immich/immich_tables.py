"""Immich's own tables, as far as they tell which faces are in which photo; they are read and never written.

Read from the sources of Immich: ``asset``, ``asset_face``, ``face_search`` and ``person`` have these names
since v1.137.0, and the columns used here are the same in v1.137.0, v2.0.0, v2.5.0 and v3.1.0 (``isVisible``
came with v2.5.0). After v3.1.0 (commit 11b1aa5ecf, cluster groups) the person of a face is in
``personGroupId``, before in ``personId``.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg.sql import SQL, Composable, Composed, Identifier

from setnet.connect.postgres.connection import Connection
from setnet.errors import NotAnIndexError

NEEDED = {
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
                f"expected {', '.join(NEEDED)}"
            )
        person = "personGroupId" if "personGroupId" in columns.get("asset_face", ()) else "personId"
        key = "personGroupId" if person == "personGroupId" else "id"
        needed = {**NEEDED, "asset_face": (*NEEDED["asset_face"], person), "person": (*NEEDED["person"], key)}
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
    for table, column in connection.execute(select, [schema, list(NEEDED)]):
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
