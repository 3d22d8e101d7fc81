"""The tables of version 8 of the database: more about photos, and what changed in which order.

`photo_facts` has a row for a photo whose date is not from its EXIF data, that was read in part, or that
another program knows by an id of its own.

`item_changes` has one row for each photo and person there ever was, with the number of its last change; a
change gives it a new number, so that whoever read up to some number finds what changed since behind it. It
is kept by triggers, and made anew with the database: `sums` has a random number that tells one feed of
changes from another.
"""

from __future__ import annotations

from setnet.library.store.tables import row_sums

TABLES = ("photo_facts",)
CHANGES = "item_changes"

_TABLES = """
    CREATE TABLE photo_facts (
        id INTEGER PRIMARY KEY REFERENCES photos ON DELETE CASCADE,
        taken_from TEXT,
        note TEXT,
        external TEXT
    );
    CREATE UNIQUE INDEX photo_facts_by_external ON photo_facts (external) WHERE external IS NOT NULL;
    CREATE TABLE item_changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        item NOT NULL,
        first INTEGER
    );
    CREATE INDEX item_changes_by_item ON item_changes (kind, item);
    INSERT INTO item_changes (kind, item) SELECT 'photo', id FROM photos WHERE state = 'ready' ORDER BY id;
    INSERT INTO item_changes (kind, item) SELECT 'person', uid FROM people ORDER BY id;
    INSERT INTO sums VALUES ('item_changes', abs(random() / 2));
"""


def _noted(kind: str, item: str, source: str = "") -> str:
    """Return the statements that give an item, or the items of a source, new numbers.

    `item` begins with a plus: compared with a column of a type, `item_changes.item` could not be looked up
    in its index, and each change would read all the others.
    """
    earlier = f"SELECT coalesce(first, id) FROM item_changes WHERE kind = '{kind}' AND item = {item}"
    return (
        f"INSERT INTO item_changes (kind, item, first) SELECT '{kind}', {item}, ({earlier}) {source}; "
        f"DELETE FROM item_changes WHERE kind = '{kind}' AND id NOT IN "
        f"(SELECT max(id) FROM item_changes WHERE kind = '{kind}' AND item = {item}) AND item = {item};"
    )


_TRIGGERS = (
    "CREATE TRIGGER photos_noted_new AFTER INSERT ON photos WHEN NEW.state = 'ready' BEGIN "
    f"{_noted('photo', '+NEW.id')} END;\n"
    "CREATE TRIGGER photos_noted_ready AFTER UPDATE OF state ON photos "
    "WHEN NEW.state <> OLD.state AND NEW.state <> 'adding' AND (NEW.state = 'ready' OR EXISTS "
    "(SELECT 1 FROM item_changes WHERE kind = 'photo' AND item = +NEW.id)) BEGIN "
    f"{_noted('photo', '+NEW.id')} END;\n"
    "CREATE TRIGGER photos_noted_gone AFTER DELETE ON photos WHEN EXISTS "
    "(SELECT 1 FROM item_changes WHERE kind = 'photo' AND item = +OLD.id) BEGIN "
    f"{_noted('photo', '+OLD.id')} END;\n"
    "CREATE TRIGGER people_noted_new AFTER INSERT ON people BEGIN "
    f"{_noted('person', '+NEW.uid')} END;\n"
    "CREATE TRIGGER people_noted_gone AFTER DELETE ON people BEGIN "
    f"{_noted('person', '+OLD.uid')} END;\n"
    "CREATE TRIGGER people_noted_changed AFTER INSERT ON changes BEGIN "
    "INSERT INTO item_changes (kind, item, first) SELECT 'person', uid, "
    "(SELECT coalesce(first, id) FROM item_changes WHERE kind = 'person' AND item = +uid) "
    "FROM people WHERE id IN (SELECT value FROM json_each(NEW.people)) ORDER BY id; "
    "DELETE FROM item_changes WHERE kind = 'person' AND EXISTS (SELECT 1 FROM item_changes AS later "
    "WHERE later.kind = 'person' AND later.item = item_changes.item AND later.id > item_changes.id); END;\n"
)

MIGRATION = (
    _TABLES + _TRIGGERS + "".join(row_sums.triggers(table, row_sums.COLUMNS[table]) for table in TABLES)
)

# An older database has neither.
STAND_INS = row_sums.empty_views(TABLES) + (
    "CREATE TEMP VIEW item_changes AS SELECT NULL AS id, NULL AS kind, NULL AS item, NULL AS first WHERE 0;\n"
)
