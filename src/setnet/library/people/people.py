"""The saved people of a library: found by name, alias or id, and mended with undo."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library.people import erasure, history, lookup, mending
from setnet.library.people.example import EXAMPLE_COLUMNS, Example, example_of, refuse_unfit
from setnet.library.people.history import Change
from setnet.library.people.lookup import Who
from setnet.library.people.names import checked_name, key_of
from setnet.library.people.person import Person
from setnet.library.people.recorder import Recorder
from setnet.library.people.verdict import Verdict, verdicts_of
from setnet.library.store.database import Database
from setnet.wording import counted

Descriptors = Callable[[str], NDArray[np.float32]]


class People:
    """The people of a library: a collection by name, upper and lower case alike, by alias or by id.

    Iterating yields `Person`; `name in people` and `len(people)` work as expected. Every change
    is entered in a journal and can be undone, unless it is for good; the `Person` that it returns has its
    number.
    """

    def __init__(self, database: Database, dim: int, descriptors: Descriptors | None = None) -> None:
        self._database = database
        self.dim = dim
        self._descriptors = descriptors

    def __iter__(self) -> Iterator[Person]:
        with self._database.reading() as db:
            return iter(lookup.everybody(db))

    def __len__(self) -> int:
        with self._database.reading() as db:
            return int(db.execute("SELECT count(*) FROM people").fetchone()[0])

    def __contains__(self, name: object) -> bool:
        with self._database.reading() as db:
            return isinstance(name, str) and lookup.find(db, name) is not None

    def get(self, name: Who) -> Person:
        """Return a person; an unknown name is an error that lists the known ones."""
        with self._database.reading() as db:
            return lookup.person_at(db, lookup.known(db, name))

    def examples(self, name: Who) -> list[Example]:
        """Return the example faces of a person, oldest first."""
        with self._database.reading() as db:
            rows = db.execute(
                f"SELECT {EXAMPLE_COLUMNS} FROM examples WHERE person = ? ORDER BY id",
                (lookup.known(db, name),),
            ).fetchall()
        return [example_of(row) for row in rows]

    def example(self, name: Who, number: int) -> Example:
        """Return an example face of a person by its number."""
        found = next((e for e in self.examples(name) if e.number == number), None)
        if found is None:
            raise InvalidInputError(f"{self.get(name).name!r} has no example {number}")
        return found

    def descriptors(self, name: Who) -> NDArray[np.float32]:
        """Return the (n, dim) descriptors of a person's examples; a person without any is an error."""
        examples = self.examples(name)
        if not examples:
            raise InvalidInputError(
                f"{self.get(name).name!r} has no example face left, as they were removed or the photos they "
                "came from forgotten: `setnet people add NAME PHOTO...` gives new ones"
            )
        return np.stack([example.descriptor for example in examples])

    def picture(self, name: Who) -> bytes | None:
        """Return a small JPEG of a person's face: their cover, else the oldest example's that has one."""
        cover = self.get(name).cover
        pictures = {example.number: example.picture for example in self.examples(name) if example.picture}
        return pictures.get(cover) or next(iter(pictures.values()), None)

    def aliases(self, name: Who, add: Sequence[str] = (), drop: Sequence[str] = ()) -> list[str]:
        """Return the other names of a person, with some added and some dropped."""
        there = {key_of(alias): alias for alias in self.get(name).aliases}
        for alias in drop:
            if there.pop(key_of(alias), None) is None:
                known = ", ".join(there.values()) or "by no other name"
                raise InvalidInputError(f"{self.get(name).name!r} is not also called {alias!r}, but {known}")
        return [*there.values(), *add]

    def add(self, name: str, examples: Sequence[Example]) -> Person:
        """Keep example faces of a person, new or known; a face that they have already counts once."""
        known = name in self
        name = name if known else checked_name(name)
        if not examples:
            raise InvalidInputError(f"no example face for {name!r}: give at least one photo of them")
        for example in examples:
            refuse_unfit(example.descriptor, self.dim, name)
        with self.recording() as recorder:
            person = lookup.find(recorder.db, name)
            did = "saved {} with" if person is None else "gave {}"
            if person is None:
                person = mending.create(recorder, name)
            new = mending.add_examples(recorder, person, examples)
            did = did.format(lookup.name_of(recorder.db, person))
            return self._entered(recorder, "add", f"{did} {_faces(new)}", person)

    def rename(self, name: Who, new: str) -> Person:
        """Give a person another name; one that is taken is refused, as that is a merge."""
        return self.edit(name, new_name=new)

    def edit(
        self,
        name: Who,
        *,
        new_name: str | None = None,
        aliases: Sequence[str] | None = None,
        note: str | None = None,
        cover: int | None = None,
    ) -> Person:
        """Change what is given of a person, in one step.

        `aliases` are all other names from then on; `cover` is the number of an example, 0 for none chosen.
        """
        with self.recording() as recorder:
            person = lookup.known(recorder.db, name)
            before = lookup.name_of(recorder.db, person)
            if new_name is not None:  # before the aliases: the old name may become one
                mending.rename(recorder, person, new_name)
            if aliases is not None:
                mending.set_aliases(recorder, person, aliases)
            if note is not None:
                mending.set_note(recorder, person, note)
            if cover is not None:
                mending.set_cover(recorder, person, cover)
            after = lookup.name_of(recorder.db, person)
            if before == after:
                return self._entered(recorder, "edit", f"edited {before}", person)
            return self._entered(recorder, "rename", f"renamed {before} to {after}", person)

    def merge(self, into: Who, others: Sequence[Who]) -> Person:
        """Give the examples, aliases and verdicts of `others` to `into`; the other names are gone."""
        with self.recording() as recorder:
            person = lookup.known(recorder.db, into)
            rows = list(dict.fromkeys(lookup.known(recorder.db, other) for other in others))
            if person in rows:
                raise InvalidInputError(
                    f"{lookup.name_of(recorder.db, person)!r} cannot be merged into itself"
                )
            names = ", ".join(lookup.name_of(recorder.db, row) for row in rows)
            for row in rows:
                mending.merge(recorder, person, row)
            summary = f"merged {names} into {lookup.name_of(recorder.db, person)}"
            return self._entered(recorder, "merge", summary, person, *rows)

    def split(self, name: Who, numbers: Sequence[int], new: str) -> Person:
        """Make some examples of a person a new person; return that one."""
        with self.recording() as recorder:
            person = lookup.known(recorder.db, name)
            examples = mending.own_examples(recorder, person, numbers)
            if len(examples) == len(mending.examples_of(recorder, person)):
                raise InvalidInputError(
                    "these are all the examples there are: rename the person, or leave one where it is"
                )
            made = mending.create(recorder, new)
            mending.move_examples(recorder, examples, made)
            old, named = (lookup.name_of(recorder.db, row) for row in (person, made))
            summary = f"split {_faces(len(examples))} off {old} as {named}"
            return self._entered(recorder, "split", summary, made, person)

    def move(self, name: Who, numbers: Sequence[int], to: Who) -> Person:
        """Give some examples of a person to another saved person; return that one."""
        with self.recording() as recorder:
            person, target = lookup.known(recorder.db, name), lookup.known(recorder.db, to)
            if person == target:
                raise InvalidInputError("both are one person: choose another to move examples to")
            examples = mending.own_examples(recorder, person, numbers)
            mending.move_examples(recorder, examples, target)
            old, new = (lookup.name_of(recorder.db, row) for row in (person, target))
            summary = f"moved {_faces(len(examples))} from {old} to {new}"
            return self._entered(recorder, "move", summary, target, person)

    def remove_examples(self, name: Who, numbers: Sequence[int], *, for_good: bool = False) -> Person:
        """Remove examples of a person; `for_good` without undo, and without a trace in any file."""
        with self.recording() as recorder:
            person = lookup.known(recorder.db, name)
            examples = mending.own_examples(recorder, person, numbers)
            summary = f"removed {_faces(len(examples))} of {lookup.name_of(recorder.db, person)}"
            if for_good:
                erasure.erase_examples(recorder.db, [e.number for e in examples if e.number is not None])
                history.enter_final(recorder.db, f"{summary} for good", [person])
            else:
                for example in examples:
                    assert example.number is not None
                    recorder.delete("examples", example.number)
            left = self._entered(recorder, "remove examples", summary, person)
        if for_good:
            self._database.erase_traces()
        return left

    def remove(self, *names: Who, for_good: bool = False) -> list[Change]:
        """Remove people with their examples and what was said of them; return the entries of the journal.

        `for_good` deletes them without undo and without a trace in any file. It reaches people of these names
        who were removed before, too: they wait in the journal for an undo.
        """
        with self.recording() as recorder:
            if for_good:
                people = {row for name in names for row in self._to_erase(recorder.db, name)}
                erasure.erase_people(recorder.db, sorted(people))
                summary = f"deleted {counted(len(people), 'person', 'people')} for good"
                entered = [history.enter_final(recorder.db, summary)]
            else:
                rows = dict.fromkeys(lookup.known(recorder.db, name) for name in names)
                entered = [self._remove(recorder.db, row) for row in rows]
            done = [change for change in history.changes(recorder.db) if change.id in entered]
        if for_good:
            self._database.erase_traces()
        return done

    def _remove(self, db: sqlite3.Connection, person: int) -> int:
        """Remove a person in a change of its own: others can then be erased without it."""
        recorder, summary = Recorder(db), f"removed {lookup.name_of(db, person)}"
        mending.remove(recorder, person)
        entered = recorder.write(erasure.REMOVAL, summary, [person])
        assert entered is not None
        return entered

    def _to_erase(self, db: sqlite3.Connection, name: Who) -> list[int]:
        """Return the rows of a person and of those removed before who had their name, or else an error."""
        text = name.id if isinstance(name, Person) else name
        waiting = erasure.removed_people(db, text)
        return waiting if waiting and lookup.find(db, text) is None else [*waiting, lookup.known(db, name)]

    def confirm(self, person: Who, photo_id: str, face: int, picture: bytes | None = None) -> Person:
        """Keep that a face of a photo is a person, as an example too; `face` is its number, from 0."""
        with self.recording() as recorder:
            row = lookup.known(recorder.db, person)
            mending.confirm(recorder, row, self._face(recorder, photo_id, face, picture))
            summary = f"confirmed a face of {lookup.name_of(recorder.db, row)}"
            return self._entered(recorder, "confirm", summary, row, *_owners(recorder))

    def refuse(self, person: Who, photo_id: str, face: int) -> Person:
        """Keep that a face of a photo is not a person: it does not match them any more."""
        with self.recording() as recorder:
            row = lookup.known(recorder.db, person)
            mending.refuse(recorder, row, self._face(recorder, photo_id, face, None))
            summary = f"refused a face for {lookup.name_of(recorder.db, row)}"
            return self._entered(recorder, "refuse", summary, row)

    def verdicts(self, person: Who) -> list[Verdict]:
        """Return what was confirmed and refused of a person, with where the faces are now.

        Of a photo that was copied there is one for each copy, with one `id`.
        """
        with self._database.reading() as db:
            return verdicts_of(db, lookup.known(db, person))

    def history(self, limit: int | None = None) -> list[Change]:
        """Return the changes in the journal, latest first."""
        with self._database.reading() as db:
            return history.changes(db, limit)

    def undo(self, change: int | None = None) -> Change:
        """Undo the latest change that is not undone, or the one of this number; return the new entry.

        Undoing an undo redoes. A change that a later one builds on is refused: undo that first.
        """
        with self.recording() as recorder:
            return history.undo(recorder, change)

    def erase_history(self) -> int:
        """Delete the journal for good, with the rows that waited for an undo; return how many changes."""
        with self._database.writing() as db:
            erased = history.erase(db)
        self._database.erase_traces()
        return erased

    def descriptors_in(self, photo_id: str) -> NDArray[np.float32]:
        """Return the descriptors of the faces of a photo in the library of these people."""
        if self._descriptors is None:
            raise InvalidInputError("these people belong to no library with photos")
        return self._descriptors(photo_id)

    @contextmanager
    def recording(self) -> Iterator[Recorder]:
        """Yield what changes rows inside one transaction, for changes that other parts enter."""
        with self._database.writing() as db:
            yield Recorder(db)

    def _entered(self, recorder: Recorder, kind: str, summary: str, *people: int) -> Person:
        change = recorder.write(kind, summary, people)
        return lookup.person_at(recorder.db, people[0], change)

    def _face(self, recorder: Recorder, photo_id: str, face: int, picture: bytes | None) -> Example:
        return mending.face_in_photo(recorder.db, self.descriptors_in, photo_id, face, picture)


def _owners(recorder: Recorder) -> Iterable[int]:
    """Return whose rows a change deleted: they are concerned by it too."""
    for row in recorder.rows:
        if row.did == "delete" and row.table in ("examples", "verdicts"):
            found = recorder.db.execute(f"SELECT person FROM removed_{row.table} WHERE id = ?", (row.row,))
            yield found.fetchone()[0]


def _faces(number: int) -> str:
    return "1 example face" if number == 1 else f"{number} example faces"
