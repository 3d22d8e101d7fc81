"""Makes the tables, and brings those of an earlier version up to date, in numbered steps."""

from __future__ import annotations

from psycopg import sql

from setnet.errors import NotAnIndexError, VersionError
from setnet.index import Settings
from setnet.sources.postgres.connection import Connection
from setnet.sources.postgres.table_names import Tables


def _make_tables(tables: Tables, settings: Settings, partitions: int) -> list[sql.Composed]:
    assert settings.shape.sets is not None
    columns = {
        "items": 'id text COLLATE "C" PRIMARY KEY, elements integer NOT NULL, '
        "attributes jsonb NOT NULL DEFAULT '{{}}', set_vector bit({bits})",
        "elements": 'item text COLLATE "C" NOT NULL REFERENCES {items} ON DELETE CASCADE, '
        "position integer NOT NULL, vector vector({dim}) NOT NULL, PRIMARY KEY (item, position)",
    }
    sizes = {"bits": sql.Literal(settings.shape.sets.dim), "dim": sql.Literal(settings.shape.dim)}
    made = []
    for name, key in (("items", "id"), ("elements", "item")):
        divided = f" PARTITION BY HASH ({key})" if partitions > 1 else ""
        made.append(tables.sql(f"CREATE TABLE {{{name}}} ({columns[name]}){divided}", **sizes))
        made += [
            tables.sql(
                f"CREATE TABLE {{part}} PARTITION OF {{{name}}} FOR VALUES WITH (MODULUS {partitions}, "
                f"REMAINDER {number})",
                part=tables.part(name, number),
            )
            for number in range(partitions if partitions > 1 else 0)
        ]
    return made


def _make_cells(tables: Tables, settings: Settings, partitions: int) -> list[sql.Composed]:
    return [
        tables.sql("ALTER TABLE {items} ADD COLUMN cells smallint[] NOT NULL DEFAULT '{{-1}}'"),
        tables.sql(
            "CREATE TABLE {cells} (number smallint PRIMARY KEY, centre vector({dim}) NOT NULL)",
            dim=sql.Literal(settings.shape.dim),
        ),
        tables.sql("CREATE INDEX items_cells ON {items} USING gin (cells)"),
        tables.sql("INSERT INTO {meta} VALUES ('cells', '0')"),
    ]


# Step n takes the tables from version n - 1 to n. A step that was released is never changed.
STEPS = (_make_tables, _make_cells)


def version_of(connection: Connection, tables: Tables, shown: str) -> int:
    """Return the version of the tables that are there; an error when there are none, or newer ones."""
    named = connection.execute("SELECT to_regclass(%s)", [f"{_quoted(tables.schema)}.meta"]).fetchone()
    if named is None or named[0] is None:
        raise NotAnIndexError(
            f"{shown} has no setnet tables in schema {tables.schema!r}: `setnet pg init` makes them"
        )
    row = connection.execute(tables.sql("SELECT value::int FROM {meta} WHERE key = 'version'")).fetchone()
    version = int(row[0]) if row else 0
    if version > len(STEPS):
        raise VersionError(
            f"{shown}: the tables have version {version}, this setnet knows up to {len(STEPS)}: update setnet"
        )
    return version


def migrate(
    connection: Connection, tables: Tables, version: int, settings: Settings, partitions: int
) -> None:
    """Take the tables from a version to the newest, inside the caller's transaction."""
    for step in STEPS[version:]:
        for statement in step(tables, settings, partitions):
            connection.execute(statement)
    connection.execute(
        tables.sql(
            "INSERT INTO {meta} VALUES ('version', to_jsonb(%s::int)) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        ),
        [len(STEPS)],
    )


def lock_schema(connection: Connection, tables: Tables) -> None:
    """Let nobody else create or migrate the same tables until the transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7))", [f"setnet {tables.schema}"])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
