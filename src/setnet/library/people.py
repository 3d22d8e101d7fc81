"""The saved people of a library: found by name, alias or id, saved, edited with undo."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.durable import own_errors, transaction
from setnet.errors import InvalidInputError, TakenError, choice_error
from setnet.faces import Box
from setnet.heads import Logistic
from setnet.library.examples import MAX_EXAMPLES, count_unlike, example_faces, examples_from, mixed_warning
from setnet.library.face_references import photo_number
from setnet.library.people_edits import (
    FaceName,
    FaceNaming,
    FacesNamed,
    add_examples,
    confirm_face,
    create_person,
    delete_row,
    face_in_photo,
    merge_people,
    move_examples,
    name_faces,
    own_examples,
    reject_face,
    rename_person,
    set_aliases,
    set_cover,
    set_note,
    share_faces,
    tag_photo,
    undo_merge,
    untag_photo,
)
from setnet.library.person import (
    Example,
    Label,
    Person,
    PersonFaces,
    Tag,
    Who,
    all_people,
    check_descriptor,
    checked_name,
    cover_picture,
    find_person,
    name_key,
    person_at,
    person_name,
    read_examples,
    read_known_faces,
    read_labels,
    read_tags,
    require_person,
    spelling_hints,
    stack_examples,
)
from setnet.library.pictures import draw_face_if_there
from setnet.library.purge import (
    REMOVAL,
    erase_examples,
    erase_people,
    forget_person,
    note_purge,
    removed_people,
)
from setnet.library.schema import refresh_groups
from setnet.library.undo import (
    Change,
    enter_change,
    erase_changes,
    list_changes,
    record_final,
    recording,
    undo_change,
)
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library.appearances import PeopleTogether, PhotoCounts
    from setnet.library.library import Library
    from setnet.library.people_exchange import PeopleExport, PeopleFile, PeopleImport
    from setnet.library.search import PersonPhotos

Descriptors = Callable[[str], NDArray[np.float32]]
_PROGRESS_STEP = 200  # faces


class People:
    """The people of a library: a collection by name, upper and lower case alike, by alias or by id.

    Iterating yields `Person`; `name in people` and `len(people)` work as expected. Every change
    is entered in a journal and can be undone, unless it is for good; the `Person` that it returns has its
    number.
    """

    def __init__(self, library: Library) -> None:
        self._library, self._database = library, library._database
        self.path = self._database.path
        self._photo_counts: PhotoCounts | None = None

    def __iter__(self) -> Iterator[Person]:
        with self._database.reading() as db:
            return iter(all_people(db))

    def __len__(self) -> int:
        with self._database.reading() as db:
            return int(db.execute("SELECT count(*) FROM people").fetchone()[0])

    def __contains__(self, name: object) -> bool:
        with self._database.reading() as db:
            return isinstance(name, str) and find_person(db, name) is not None

    def get(self, name: Who) -> Person:
        """Return a person; an unknown name is an error that lists the known ones."""
        with self._database.reading() as db:
            return person_at(db, require_person(db, name))

    def examples(self, name: Who) -> list[Example]:
        """Return the example faces of a person, oldest first."""
        with self._database.reading() as db:
            return read_examples(db, require_person(db, name))

    def descriptors(self, name: Who) -> NDArray[np.float32]:
        """Return the (n, dim) descriptors of a person's examples; a person without any is an error."""
        return stack_examples(self.get(name).name, self.examples(name))

    def picture(self, name: Who) -> bytes | None:
        """Return a small JPEG of a person's face: their cover, else the oldest example's that has one."""
        return cover_picture(self.get(name).cover, self.examples(name))

    def aliases(self, name: Who, add: Sequence[str] = (), drop: Sequence[str] = ()) -> list[str]:
        """Return the other names of a person, with some added and some dropped."""
        there = {name_key(alias): alias for alias in self.get(name).aliases}
        for alias in drop:
            if there.pop(name_key(alias), None) is None:
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
            check_descriptor(example.descriptor, self._library.dim, name)
        with recording(self._database) as db:
            person = find_person(db, name)
            did = "saved {} with" if person is None else "gave {}"
            if person is None:
                person = create_person(db, name)
            new = add_examples(db, person, examples)
            did = did.format(person_name(db, person))
            return self._enter(db, "add", f"{did} {_faces(new)}", person)

    @own_errors
    def add_photos(
        self, name: str, images: Sequence[str], if_exists: str = "ask"
    ) -> tuple[Person, list[str]]:
        """Save example faces of a person from photos; return the person, and remarks for the user."""
        examples, notes = self.examples_in(images)
        person, more = self.save(name, examples, if_exists)
        return person, [*notes, *more]

    @own_errors
    def examples_in(self, images: Sequence[str]) -> tuple[list[Example], list[str]]:
        """Return an example face of each photo, or of each photo in a folder, and remarks for the user."""
        return examples_from(images, self._library._checked_settings)

    @own_errors
    def save(
        self, name: str, examples: Sequence[Example], if_exists: str = "ask"
    ) -> tuple[Person, list[str]]:
        """Keep example faces of a person, new or known; return the person, and remarks for the user.

        Parameters
        ----------
        if_exists
            What to do when somebody is called so already. `ask` adds the faces when the name is spelt as it
            is saved and they look like that person, and raises `TakenError` otherwise; `add` adds them in any
            case, `refuse` in none.
        """
        logistic = self._library.set_index.logistic
        check_name_free(self, name, examples, logistic, if_exists)
        known = self.get(name) if name in self else None
        before = [] if known is None else self.examples(known)
        saved = self.add(name, examples)
        notes = []
        if known is None:
            with self._database.reading() as db:
                notes += spelling_hints(db, [saved.name])
        again = len(examples) - (saved.examples - len(before))
        if again > 0:
            notes.append(f"{_faces(again)} {saved.name} had already: the same face counts once")
        return saved, notes + mixed_warning(saved.name, before, self.examples(saved), logistic)

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
        with recording(self._database) as db:
            person = require_person(db, name)
            before = person_name(db, person)
            if new_name is not None:  # before the aliases: the old name may become one
                rename_person(db, person, new_name)
            if aliases is not None:
                set_aliases(db, person, aliases)
            if note is not None:
                set_note(db, person, note)
            if cover is not None:
                set_cover(db, person, cover)
            after = person_name(db, person)
            if before == after:
                return self._enter(db, "edit", f"edited {before}", person)
            return self._enter(db, "rename", f"renamed {before} to {after}", person)

    def merge(self, into: Who, others: Sequence[Who], if_unlike: str = "ask") -> Person:
        """Give the examples, aliases, labels and groups of `others` to `into`; the other names are gone.

        Where faces do not look like one person, `if_unlike` "ask" raises `TakenError`, and "merge" merges.
        """
        if if_unlike not in IF_UNLIKE:
            raise choice_error("if_unlike", if_unlike, IF_UNLIKE)
        with recording(self._database) as db:
            person = require_person(db, into)
            rows = list(dict.fromkeys(require_person(db, other) for other in others))
            if person in rows:
                raise InvalidInputError(f"{person_name(db, person)!r} cannot be merged into itself")
            if if_unlike == "ask":
                self._check_alike(db, person, rows)
            names = ", ".join(person_name(db, row) for row in rows)
            for row in rows:
                merge_people(db, person, row)
            summary = f"merged {names} into {person_name(db, person)}"
            return self._enter(db, "merge", summary, person, *rows)

    def _check_alike(self, db: sqlite3.Connection, person: int, others: Sequence[int]) -> None:
        """Raise when others' examples do not look like a person's."""
        there = read_examples(db, person)
        for other in others:
            theirs = read_examples(db, other)
            unlike = count_unlike(there, theirs, self._library.set_index.logistic)
            if unlike:
                into, name = person_name(db, person), person_name(db, other)
                raise TakenError(
                    f"{unlike} of the {_faces(len(theirs))} of {name} {'does' if unlike == 1 else 'do'} not "
                    f"look like {into}: merge them all the same with if_unlike 'merge', or not at all",
                    asdict(person_at(db, person)),
                )

    def split(self, name: Who, numbers: Sequence[int], new: str) -> Person:
        """Make some examples of a person a new person; return that one.

        Examples that a merge brought take all along that came with them. Else the groups and confirmed faces
        go to whom of the two they look like more.
        """
        with recording(self._database) as db:
            person = require_person(db, name)
            examples = own_examples(db, person, numbers)
            if len(examples) == len(read_examples(db, person)):
                raise InvalidInputError(
                    "these are all the examples there are: rename the person, or leave one where it is"
                )
            made = create_person(db, new)
            if not undo_merge(db, person, numbers, made):
                move_examples(db, examples, made)
                share_faces(db, person, made, self._library.photos.descriptors)
            refresh_groups(db, is_recorded=True)
            old, named = (person_name(db, row) for row in (person, made))
            summary = f"split {_faces(len(examples))} off {old} as {named}"
            return self._enter(db, "split", summary, made, person)

    def move(self, name: Who, numbers: Sequence[int], to: Who) -> Person:
        """Give some examples of a person to another saved person; return that one."""
        with recording(self._database) as db:
            person, target = require_person(db, name), require_person(db, to)
            if person == target:
                raise InvalidInputError("both are one person: choose another to move examples to")
            examples = own_examples(db, person, numbers)
            move_examples(db, examples, target)
            old, new = (person_name(db, row) for row in (person, target))
            summary = f"moved {_faces(len(examples))} from {old} to {new}"
            return self._enter(db, "move", summary, target, person)

    def remove_examples(self, name: Who, numbers: Sequence[int], *, for_good: bool = False) -> Person:
        """Remove examples of a person; `for_good` without undo, and without a trace in any file."""
        with self._database.writing() if for_good else recording(self._database) as db:
            person = require_person(db, name)
            examples = own_examples(db, person, numbers)
            summary = f"removed {_faces(len(examples))} of {person_name(db, person)}"
            if for_good:
                erase_examples(db, [e.number for e in examples if e.number is not None])
                record_final(db, f"{summary} for good", [person])
            else:
                for example in examples:
                    assert example.number is not None
                    delete_row(db, "examples", example.number)
            left = self._enter(db, "remove examples", summary, person)
        if for_good:
            self._database.erase_traces()
        return left

    def remove(self, *names: Who, for_good: bool = False) -> list[Change]:
        """Remove people with their examples and what was said of them; return the entries of the journal.

        `for_good` deletes them without undo and without a trace in any file. It reaches people of these names
        who were removed before, too: they wait in the journal for an undo.
        """
        with self._database.writing() if for_good else recording(self._database) as db:
            if for_good:
                people = {row for name in names for row in self._to_erase(db, name)}
                erase_people(db, sorted(people))
                summary = f"deleted {pluralise(len(people), 'person', 'people')} for good"
                entered = [record_final(db, summary)]
            else:
                rows = dict.fromkeys(require_person(db, name) for name in names)
                entered = [self._remove(db, row) for row in rows]
            done = [change for change in list_changes(db) if change.id in entered]
        if for_good:
            self._database.erase_traces()
        return done

    @own_errors
    def forget(self, name: Who) -> int:
        """Delete a person for good, with their faces in photos; return from how many photos.

        These are faces that are surely theirs, were confirmed, or are in a group of theirs. Photos and other
        faces stay. Index runs leave the person's faces in these photos out from then on; in new photos they
        are faces of somebody unknown.
        """
        from setnet.library.appearances import find_appearances

        person, known = self.get(name), self.known_faces(name)
        found = find_appearances(self._library, [self._library.person(person.id)], sure=True)
        places = zip(found.photo.tolist(), found.face.tolist(), strict=True)  # twice in a photo, too
        faces = known.confirmed | known.grouped | {(str(photo), face) for photo, face in places if face >= 0}
        with self._library._writing() as index:
            return forget_person(self._database, index, person, faces)

    def _remove(self, db: sqlite3.Connection, person: int) -> int:
        """Remove a person in a change of its own: others can then be erased without it."""
        summary = f"removed {person_name(db, person)}"
        delete_row(db, "people", person)  # with all that is theirs; their groups are nobody's
        entered = enter_change(db, REMOVAL, summary, [person])
        assert entered is not None
        return entered

    def _to_erase(self, db: sqlite3.Connection, name: Who) -> list[int]:
        """Return the rows of a person and of those removed before who had their name, or else an error."""
        text = name.id if isinstance(name, Person) else name
        waiting = removed_people(db, text)
        return waiting if waiting and find_person(db, text) is None else [*waiting, require_person(db, name)]

    @own_errors
    def confirm(self, person: Who, photo_id: str, face: int, picture: bytes | None = b"") -> Person:
        """Keep that a face of a photo is a person, as an example too; `face` is its number, from 0.

        The example's `picture` is a small JPEG, by default made from the photo.
        """
        if picture == b"":
            picture = draw_face_if_there(self._library.photos.get(photo_id), face)
        with recording(self._database) as db:
            row = require_person(db, person)
            owners = confirm_face(db, row, self._face(db, photo_id, face, picture))
            summary = f"confirmed a face of {person_name(db, row)}"
            return self._enter(db, "confirm", summary, row, *owners)

    def reject(self, person: Who, photo_id: str, face: int) -> tuple[Person, list[str]]:
        """Keep that a face of a photo is not a person: it does not match them any more.

        Returns the person, and a remark when photos that were surely theirs are guesses now.
        """
        before = self._sure_photos(person)
        with recording(self._database) as db:
            row = require_person(db, person)
            reject_face(db, row, self._face(db, photo_id, face, None))
            summary = f"rejected a face for {person_name(db, row)}"
            known = self._enter(db, "reject", summary, row)
        lost = before - self._sure_photos(known) - {photo_id}
        if not lost:
            return known, []
        verb = "is" if len(lost) == 1 else "are"
        return known, [
            f"{len(lost):,} of {pluralise(len(before), 'photo')} {verb} no longer sure: confirm those of "
            f"{known.name}, or undo the rejection (change {known.change})"
        ]

    @own_errors
    def tag(self, person: Who, photo_id: str, box: Box | None = None) -> Person:
        """Keep that a person is in a photo, in a box of the upright photo or anywhere in it.

        Searches find the photo as if the match were sure. A tag is no example of the person; at a face it
        counts as a confirmed face.
        """
        with recording(self._database) as db:
            row = require_person(db, person)
            tag_photo(db, row, photo_id, box)
            return self._enter(db, "tag", f"tagged {person_name(db, row)} in a photo", row)

    @own_errors
    def untag(self, person: Who, photo_id: str) -> Person:
        """Take the tag of a person in a photo back."""
        with recording(self._database) as db:
            row = require_person(db, person)
            untag_photo(db, row, photo_id)
            return self._enter(db, "tag", f"removed the tag of {person_name(db, row)} in a photo", row)

    def tags(self, photo_id: str) -> list[Tag]:
        """Return who is tagged in a photo."""
        with self._database.reading() as db, transaction(db, "BEGIN"):
            return read_tags(db, photo_number(photo_id))

    def tagged_contents(self, person: Who) -> tuple[tuple[bytes, Box | None], ...]:
        """Return the contents of photos that a person is tagged in, each with the box or None."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT content, x0, y0, x1, y1 FROM tags WHERE person = ? ORDER BY id",
                (require_person(db, person),),
            ).fetchall()
        return tuple((content, None if box[0] is None else Box(*box)) for content, *box in rows)

    def _sure_photos(self, person: Who) -> set[str]:
        """Return the photos that surely show a person."""
        if not self.get(person).examples:
            return set()
        return {found.photo.id for found in self.photos(person).photos if found.sure}

    def labels(self, person: Who) -> list[Label]:
        """Return what was confirmed and rejected of a person, with where the faces are now.

        Of a photo that was copied there is one for each copy, with one `id`.
        """
        with self._database.reading() as db:
            return read_labels(db, require_person(db, person))

    def known_faces(self, person: Who) -> PersonFaces:
        """Return the faces of photos that are known to be a person's, not to be, or are in a group of theirs.

        An example face of a photo is theirs as if it was confirmed.
        """
        with self._database.reading() as db, transaction(db, "BEGIN"):
            row = require_person(db, person)
            return read_known_faces(db, row)[row]

    def history(self, limit: int | None = None) -> list[Change]:
        """Return the changes in the journal, latest first."""
        with self._database.reading() as db:
            return list_changes(db, limit)

    def undo(self, change: int | None = None) -> Change:
        """Undo the latest change that is not undone, or the one of this number; return the new entry.

        Undoing an undo redoes. A change that a later one builds on is refused: undo that first.
        """
        with recording(self._database) as db:
            return undo_change(db, change)

    def erase_history(self) -> int:
        """Delete the journal for good, with the rows that waited for an undo; return how many changes."""
        with self._database.writing() as db:
            erased = erase_changes(db)
            note_purge(db)
        self._database.erase_traces()
        return erased

    @own_errors
    def name_faces(
        self,
        faces: Sequence[FaceName],
        *,
        dry_run: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> FacesNamed:
        """Keep that faces of photos are people, new or saved, in one change that can be undone.

        All faces are kept as confirmed; of each person good ones become examples, up to a dozen in all. A
        face that is somebody else's, or was rejected for the person, stays so. A `dry_run` only reports.
        """

        def listed(stage: str) -> Iterator[FaceName]:
            for done, said in enumerate(faces):
                if progress is not None and done % _PROGRESS_STEP == 0:
                    progress(stage, done, len(faces))
                yield said

        with self._database.reading() as db, transaction(db, "BEGIN"):
            naming = FaceNaming(db, listed("comparing names"))
        if dry_run or not naming.report.named:
            return naming.report
        descriptors = cache(self._library.photos.descriptors)
        people = naming.by_person.values()
        chosen = [said for members in people for said in self._typical(members, descriptors)]
        pictures = {}
        for done, (_, photo_id, face) in enumerate(chosen):
            if progress is not None:
                progress("drawing example faces", done, len(chosen))
            pictures[photo_id, face] = draw_face_if_there(self._library.photos.get(photo_id), face)
        with recording(self._database) as db:
            return name_faces(db, listed("storing names"), pictures, descriptors)

    def _typical(self, faces: Sequence[FaceName], descriptors: Descriptors) -> list[FaceName]:
        """Return those of a person's faces that become examples beside the ones they have."""
        name = faces[0].name
        missing = MAX_EXAMPLES - (self.get(name).examples if name in self else 0)
        if missing < 1:
            return []
        photos = self._library.photos.get_many(said.photo_id for said in faces)
        vectors = np.stack([descriptors(said.photo_id)[said.face] for said in faces])
        model = self._library._matchers.model
        quality = [model.quality(photos[said.photo_id].faces[said.face].quality) for said in faces]
        return [faces[row] for row in example_faces(vectors, np.array(quality), missing)]

    @own_errors
    def to_file(self, *, descriptors: bool = True) -> PeopleFile:
        """Return all people as a file that another library can read, as of one moment."""
        from setnet.library.people_exchange import PeopleFile, PersonRecord

        model = self._library.photos.meta("model") or ""
        with self._database.reading() as db, transaction(db, "BEGIN"):
            people = [PersonRecord.of(self, person, descriptors) for person in all_people(db)]
        return PeopleFile.of(people, model, self._library.dim) if descriptors else PeopleFile.of(people)

    @own_errors
    def export(self, file: str | Path, *, descriptors: bool = True) -> PeopleExport:
        """Write all people to a JSON file, with their descriptors or without."""
        from setnet.library.people_exchange import write_people

        return write_people(self.to_file(descriptors=descriptors), Path(file))

    @own_errors
    def import_file(self, file: str | Path | bytes, *, descriptors: bool = True) -> PeopleImport:
        """Add the people of a file, or of its bytes, to those saved here, in one step.

        Without its `descriptors`, faces are found again in the photos of this library.
        """
        from setnet.library.people_exchange import import_file

        return import_file(self._library, file, use_descriptors=descriptors)

    @own_errors
    def photos(self, name: Who, offset: int = 0, limit: int | None = None) -> PersonPhotos:
        """Return the photos of a person, the latest taken first, from number `offset` on.

        They are those that a search for the person finds: with a face that looks like them, surely or maybe,
        that is an example of them, was confirmed, or is in a group of theirs.
        """
        from setnet.library.search import photos_of_person

        return photos_of_person(self._library, self.get(name), offset, limit)

    @own_errors
    def together(
        self, name: Who | None = None, *, min_people: int = 2, min_photos: int = 1
    ) -> list[PeopleTogether]:
        """Return who is surely in photos together, and in how many: sets of two to five people.

        The most frequent come first. With a `name`, only sets with that person.
        """
        from setnet.library.appearances import find_together

        return find_together(self._library, name, min_people=min_people, min_photos=min_photos)

    @own_errors
    def photo_counts(self) -> dict[str, int]:
        """Return in how many photos each person is, by their id: as many as `photos` finds of each.

        After a change, only people whom it concerns are counted again.
        """
        if self._photo_counts is None:
            from setnet.library.appearances import PhotoCounts

            self._photo_counts = PhotoCounts(self._library)
        return self._photo_counts.latest()

    def _enter(self, db: sqlite3.Connection, kind: str, summary: str, *people: int) -> Person:
        change = enter_change(db, kind, summary, people)
        return person_at(db, people[0], change)

    def _face(self, db: sqlite3.Connection, photo_id: str, face: int, picture: bytes | None) -> Example:
        return face_in_photo(db, self._library.photos.descriptors, photo_id, face, picture)


def _faces(number: int) -> str:
    return "1 example face" if number == 1 else f"{number} example faces"


IF_EXISTS = ("ask", "add", "refuse")
IF_UNLIKE = ("ask", "merge")


def check_name_free(
    people: People, name: str, examples: Sequence[Example], logistic: Logistic, if_exists: str
) -> None:
    """Raise when somebody is called so and it is not clear that they are meant; see `People.save`."""
    if if_exists not in IF_EXISTS:
        raise choice_error("if_exists", if_exists, IF_EXISTS)
    if if_exists == "add" or name not in people:
        return
    known = people.get(name)
    remedy = f"add to {known.name} with if_exists 'add', or choose another name"
    who = f"{known.name!r} is saved already, with {_faces(known.examples)}"
    if if_exists == "refuse":
        raise TakenError(f"{who}: {remedy}", asdict(known))
    if name != known.id and checked_name(name) not in (known.name, *known.aliases):
        raise TakenError(f"{who}, and {name!r} is spelt differently: {remedy}", asdict(known))
    there = people.examples(known)
    if not there or not examples:
        return
    if len({example.descriptor.shape for example in (*there, *examples)}) > 1:
        raise InvalidInputError(f"descriptors of different lengths for {name!r}")
    unlike = count_unlike(there, examples, logistic)
    if unlike:
        these = f"{unlike} of these {_faces(len(examples))}" if len(examples) > 1 else "this face"
        verb = "do" if unlike > 1 else "does"
        raise TakenError(f"{who}, and {these} {verb} not look like them: {remedy}", asdict(known))
