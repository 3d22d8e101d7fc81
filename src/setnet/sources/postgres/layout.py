"""What is fixed when the tables are made, and kept in them: dimensions, the head, the score, partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from setnet.errors import InvalidInputError, ModelError, NotAnIndexError, VersionError
from setnet.index import Settings, chosen_head, spec_of
from setnet.sets import Aggregator, Logistic, SetNet
from setnet.sources.postgres.connection import Connection
from setnet.sources.postgres.migrations import STEPS, lock_schema, migrate, version_of
from setnet.sources.postgres.table_names import Tables

MOST_PARTITIONS = 256


@dataclass(frozen=True, slots=True)
class Layout:
    """The settings of a database's items, and how many partitions they are in."""

    settings: Settings
    partitions: int = 1

    @classmethod
    def new(
        cls, head: Aggregator, dim: int, partitions: int, logistic: tuple[float, float] | Logistic
    ) -> Layout:
        """Return the layout of new tables, checked."""
        if not 1 <= partitions <= MOST_PARTITIONS:
            raise InvalidInputError(f"partitions is {partitions}: valid are 1 to {MOST_PARTITIONS}")
        return cls(Settings.new(dim, "float32", logistic, head, None, 1, None), partitions)

    def as_json(self) -> dict[str, Any]:
        """Return the layout as the database keeps it."""
        return self.settings.as_json() | {"partitions": self.partitions}

    @property
    def dim(self) -> int:
        """Dimension of the elements."""
        return self.settings.shape.dim

    @property
    def bits(self) -> int:
        """Bits of a set vector."""
        assert self.settings.shape.sets is not None
        return self.settings.shape.sets.dim


def one_bit_head(head: Aggregator | str, dim: int | None) -> Aggregator:
    """Return what makes the set vectors; an error when they are not of one bit per dimension."""
    if dim is None and head not in ("mean", "none"):
        head = SetNet.load(head) if isinstance(head, str) else head
        dim = head.element_dim
    if dim is None:
        raise InvalidInputError(f"head {head!r} takes elements of any dimension: say which with dim (--dim)")
    made = chosen_head(head, dim, None, 1)
    if made is None or made.bits != 1:
        raise InvalidInputError(
            f"head {made.name if made else head!r} makes no set vectors of one bit per dimension, which are "
            "what PostgreSQL holds: use 'sface-512', 'sface-128', 'mean' or a head of your own at one bit"
        )
    return made


def make_layout(connection: Connection, tables: Tables, layout: Layout, shown: str) -> Layout:
    """Make the tables, or find them made alike already; any number of processes may do so at once."""
    lock_schema(connection, tables)
    try:
        found = read_layout(connection, tables, shown, old_ok=True)
    except NotAnIndexError:
        connection.execute(tables.sql("CREATE SCHEMA IF NOT EXISTS {schema}"))
        connection.execute(tables.sql("CREATE TABLE {meta} (key text PRIMARY KEY, value jsonb NOT NULL)"))
        connection.execute(tables.sql("INSERT INTO {meta} VALUES ('layout', %s)"), [Jsonb(layout.as_json())])
        migrate(connection, tables, 0, layout.settings, layout.partitions)
        return layout
    if found != layout:
        raise InvalidInputError(
            f"{shown} has tables with other settings in schema {tables.schema!r}: {found.as_json()}; "
            "choose another schema, or drop that one first"
        )
    migrate(connection, tables, version_of(connection, tables, shown), found.settings, found.partitions)
    return found


def read_layout(connection: Connection, tables: Tables, shown: str, *, old_ok: bool = False) -> Layout:
    """Return the layout of the tables that are there; of an older version only if ``old_ok``."""
    version = version_of(connection, tables, shown)
    if version < len(STEPS) and not old_ok:
        raise VersionError(
            f"{shown}: the tables have version {version}, this setnet uses {len(STEPS)}: `setnet pg init` "
            "with the options they were made with brings them up to date"
        )
    row = connection.execute(tables.sql("SELECT value FROM {meta} WHERE key = 'layout'")).fetchone()
    stored: Any = row[0] if row else {}
    return Layout(Settings.of_json(stored), int(stored["partitions"]))


def head_of(layout: Layout, head: Aggregator | str | None, shown: str) -> Aggregator:
    """Return the head that made the set vectors: the one given, or the one of the stored name."""
    sets = layout.settings.shape.sets
    assert sets is not None
    made = one_bit_head(sets.name if head is None else head, layout.dim)
    if spec_of(made) != sets:
        raise ModelError(
            f"head {made.name!r} did not make the set vectors in {shown}: it is {spec_of(made)}, they are "
            f"{sets}; give the head that made them"
        )
    return made
