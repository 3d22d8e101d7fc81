"""The tables of people as of version 5 of the database: ids, other names, verdicts, and a journal of changes.

Rows of `examples` and `verdicts` that a change removes wait for its undo in `removed_examples` and
`removed_verdicts`; other rows are kept as JSON in `changed_rows`. So descriptors and pictures stand in these
four tables and nowhere else, and are found there when they must be forgotten.
"""

from __future__ import annotations

from setnet.library.store.tables import row_sums

_NEW = ("aliases", "verdicts", "changes", "changed_rows", "removed_examples", "removed_verdicts")
_CHANGED = ("people", "examples")

_TABLES = """
    ALTER TABLE people ADD COLUMN uid TEXT NOT NULL DEFAULT '';
    ALTER TABLE people ADD COLUMN note TEXT NOT NULL DEFAULT '';
    ALTER TABLE people ADD COLUMN cover INTEGER;
    UPDATE people SET uid = lower(hex(randomblob(6)));
    CREATE UNIQUE INDEX people_by_uid ON people (uid);
    ALTER TABLE examples ADD COLUMN origin TEXT NOT NULL DEFAULT 'portrait'
        CHECK (origin IN ('portrait', 'confirmed', 'group', 'import'));
    ALTER TABLE examples ADD COLUMN content BLOB;
    UPDATE examples SET content = (SELECT hash FROM photos WHERE path = examples.source);
    CREATE INDEX examples_by_source ON examples (source);
    CREATE INDEX examples_by_content ON examples (content);
    CREATE TABLE aliases (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
        name TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE
    );
    CREATE INDEX aliases_by_person ON aliases (person);
    CREATE TABLE verdicts (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
        content BLOB NOT NULL,
        x0 REAL NOT NULL, y0 REAL NOT NULL, x1 REAL NOT NULL, y1 REAL NOT NULL,
        descriptor BLOB NOT NULL,
        says TEXT NOT NULL CHECK (says IN ('yes', 'no')),
        added REAL NOT NULL
    );
    CREATE INDEX verdicts_by_person ON verdicts (person);
    CREATE INDEX verdicts_by_content ON verdicts (content);
    CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        summary TEXT NOT NULL,
        people TEXT NOT NULL,
        undoes INTEGER
    );
    CREATE TABLE changed_rows (
        id INTEGER PRIMARY KEY,
        change INTEGER NOT NULL REFERENCES changes ON DELETE CASCADE,
        tbl TEXT NOT NULL,
        row INTEGER NOT NULL,
        did TEXT NOT NULL CHECK (did IN ('insert', 'update', 'delete')),
        before TEXT,
        after TEXT
    );
    CREATE INDEX changed_rows_by_change ON changed_rows (change);
    CREATE INDEX changed_rows_by_row ON changed_rows (tbl, row);
    CREATE TABLE removed_examples (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL,
        descriptor BLOB NOT NULL,
        source BLOB,
        x0 REAL, y0 REAL, x1 REAL, y1 REAL,
        picture BLOB,
        added REAL NOT NULL,
        origin TEXT NOT NULL,
        content BLOB
    );
    CREATE INDEX removed_examples_by_source ON removed_examples (source);
    CREATE TABLE removed_verdicts (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL,
        content BLOB NOT NULL,
        x0 REAL NOT NULL, y0 REAL NOT NULL, x1 REAL NOT NULL, y1 REAL NOT NULL,
        descriptor BLOB NOT NULL,
        says TEXT NOT NULL,
        added REAL NOT NULL
    );
    INSERT INTO sums SELECT 'people', coalesce(max(id), 0) FROM people;
    INSERT INTO sums SELECT 'examples', coalesce(max(id), 0) FROM examples;
    INSERT INTO sums VALUES ('aliases', 0), ('verdicts', 0);
"""

MIGRATION = (
    "".join(map(row_sums.without_triggers, _CHANGED))
    + _TABLES
    + "".join(row_sums.triggers(table, row_sums.COLUMNS[table]) for table in (*_CHANGED, *_NEW))
    + "".join(
        row_sums.hashed_anew(table, row_sums.FIRST_COLUMNS[table], row_sums.COLUMNS[table])
        for table in _CHANGED
    )
)

# An older database names nobody by more than a name; ids are then those of its rows.
STAND_INS = (
    "CREATE TEMP VIEW people AS SELECT id, name, key, added, printf('%012x', id) AS uid, '' AS note, "
    "NULL AS cover FROM main.people;\n"
    f"CREATE TEMP VIEW examples AS SELECT {', '.join(row_sums.FIRST_COLUMNS['examples'].split())}, "
    "'portrait' AS origin, NULL AS content FROM main.examples;\n"
) + row_sums.empty_views(_NEW)
