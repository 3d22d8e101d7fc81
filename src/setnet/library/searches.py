"""Searches that are saved under a name, and folders of links that follow them.

A saved search has people by their ids: they may be renamed or merged. Whoever deletes a person for good
deletes the searches with them (`purge`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.addresses import is_address
from setnet.durable import own_errors
from setnet.errors import InvalidInputError, SetNetError, near_names
from setnet.library.paths import numbered_places, resolve_path
from setnet.library.people_edits import delete_row, insert_row, searched_ids
from setnet.library.person import checked_name, name_key, require_person
from setnet.library.query import SavedSearch
from setnet.library.undo import Change, enter_change, list_changes, recording

if TYPE_CHECKING:
    from setnet.library.library import Library


class Searches:
    """The saved searches of a library, by name; every change can be undone (`People.undo`)."""

    def __init__(self, library: Library) -> None:
        self._library, self.path = library, library.path

    def __iter__(self) -> Iterator[SavedSearch]:
        with self._library._database.reading() as db:
            names = dict(db.execute("SELECT uid, name FROM people").fetchall())
            rows = db.execute("SELECT name, query, link FROM searches ORDER BY key").fetchall()
        return (_search(names, *row) for row in rows)

    def get(self, name: str) -> SavedSearch:
        """Return a saved search; an unknown name is an error that lists the known ones."""
        known = list(self)
        found = next((search for search in known if name_key(search.name) == name_key(name)), None)
        if found is None:
            names = [search.name for search in known]
            near = near_names(name, names)
            said = f"there are {', '.join(names)}" if names else "none is saved"
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise InvalidInputError(f"no saved search {name!r}: {said}{hint}")
        return found

    @own_errors
    def save(self, search: SavedSearch) -> SavedSearch:
        """Keep a search under its name, in place of the one that has it; people are saved names."""
        name = checked_name(search.name)
        search.query()  # raises for what no search could have
        with recording(self._library._database) as db:
            rows = {who: require_person(db, who) for who in (*search.people, *search.without)}
            uids = dict(db.execute("SELECT id, uid FROM people").fetchall())
            ids = {who: uids[row] for who, row in rows.items()}
            stored = asdict(search) | {
                "people": [ids[who] for who in search.people],
                "without": [ids[who] for who in search.without],
            }
            del stored["name"], stored["link_to"]
            link = None if search.link_to is None else resolve_path(search.link_to)
            values = {"name": name, "query": json.dumps(stored), "link": link}
            known = db.execute("SELECT id FROM searches WHERE key = ?", (name_key(name),)).fetchone()
            if known is None:
                insert_row(db, "searches", key=name_key(name), added=time.time(), **values)
            else:
                db.execute(
                    "UPDATE searches SET name = :name, query = :query, link = :link WHERE id = :id",
                    values | {"id": known[0]},
                )
            enter_change(db, "search", f"saved the search {name}", rows.values())
        return self.get(name)

    @own_errors
    def remove(self, name: str) -> Change:
        """Remove a saved search; the links it made stay."""
        search = self.get(name)
        with recording(self._library._database) as db:
            row, query = db.execute(
                "SELECT id, query FROM searches WHERE key = ?", (name_key(search.name),)
            ).fetchone()
            delete_row(db, "searches", row)
            people = [
                person
                for uid in searched_ids(query)
                for (person,) in db.execute("SELECT id FROM people WHERE uid = ?", (uid,))
            ]
            entered = enter_change(db, "search", f"removed the search {search.name}", people)
            return next(change for change in list_changes(db) if change.id == entered)

    def update_all_links(self) -> list[str]:
        """Bring the folders of links up to date; return a remark for each that could not be."""
        return [remark for search in self if search.link_to for remark in self.update_links(search)]

    def update_links(self, search: SavedSearch) -> list[str]:
        """Make the folder of a search link to its photos, and to no other photos of the library."""
        assert search.link_to is not None
        folder = Path(search.link_to)
        try:
            answer = self._library.search(search.query(max(1, len(self._library.set_index))))
            folder.mkdir(parents=True, exist_ok=True)
            wanted = dict.fromkeys(hit.path for hit in answer.hits if not is_address(hit.path))
            there = {link.readlink(): link for link in sorted(folder.iterdir()) if link.is_symlink()}
            for path, link_there in there.items():  # of a photo of ours that is no hit any more
                is_ours = any(path.is_relative_to(of_library) for of_library in self._library.folders)
                if path not in wanted and is_ours:
                    link_there.unlink()
            for path in wanted:
                if path not in there:
                    link(path, folder)
        except (SetNetError, OSError) as error:
            return [f"the links of {search.name!r} are not up to date: {error}"]
        return []


def link(photo: Path, folder: Path) -> None:
    """Make a symbolic link to a photo in a folder, under its name or a numbered one."""
    for place in numbered_places(photo, folder):
        try:
            place.symlink_to(photo)
            break
        except FileExistsError:
            continue


def _search(names: Mapping[str, str], name: str, query: str, link: bytes | None) -> SavedSearch:
    stored = json.loads(query)
    for key in ("people", "without"):
        stored[key] = tuple(names.get(uid, "somebody removed") for uid in stored[key])
    return SavedSearch(name=name, **stored, link_to=None if link is None else os.fsdecode(link))
