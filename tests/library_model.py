"""A library in plain Python: what its photos and people are after any changes, and what a search finds.

Photo ``7.jpg`` always shows the same people, so that a library of invented photos needs no more than its name.
A face is called ``7.jpg 3`` after its photo and the person that it shows, a portrait ``portrait 3 12`` after
the person and the view.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from invented_photos import content_of, face_of, store
from setnet.errors import InvalidInputError
from setnet.library import Example, Library

__all__ = ["Change", "Model", "NotPossibleError", "Someone", "apply", "observe", "people_in", "perform", "propose"]

Change = tuple[Any, ...]  # what to do, and with what
NAMES = ("Anna", "Ben", "Carl", "Dora", "Emil", "Fay")
IDENTITIES = 5
PHOTOS = 14
FINAL, UNSURE = "final", "unsure"
FOLDER = "/invented/"
_NAME_BY_CONTENT = {content_of(f"{number}.jpg"): f"{number}.jpg" for number in range(PHOTOS)}


@dataclass
class Someone:
    """A saved person: example faces, what was said of faces, other names and a note."""

    examples: list[str] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)
    note: str = ""


People = dict[str, Someone]


@dataclass
class Model:
    """What a library holds, and what its journal can undo.

    Attributes
    ----------
    undoable
        The people before each change that `undo` takes back, oldest first; `FINAL` where something was
        deleted for good, beyond which `undo` does not go, and `UNSURE` where there may be such an entry.
    redoable
        The people before the undo that was the latest change, if it was one.
    mentioned
        Faces of photos of which the library or its journal holds descriptors.
    dropped
        Faces of which the journal may hold descriptors, or dropped them together with a person.
    """

    photos: set[str] = field(default_factory=set)
    people: People = field(default_factory=dict)
    undoable: list[People | str] = field(default_factory=list)
    redoable: People | None = None
    mentioned: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)

    def holds(self) -> Any:
        """Return what `observe` finds in a library that is in this state."""
        people = {
            name: (sorted(p.examples), dict(sorted(p.verdicts.items())), sorted(p.aliases), p.note)
            for name, p in self.people.items()
        }
        return sorted(self.photos), people

    def taken(self) -> set[str]:
        """Return all names that somebody has."""
        return {*self.people, *(alias for p in self.people.values() for alias in p.aliases)}


class NotPossibleError(Exception):
    """A change that the library has to refuse."""


def people_in(photo: str) -> list[int]:
    """Return who is in a photo: nobody to three people."""
    number = int(photo.removesuffix(".jpg"))
    return random.Random(number).sample(range(1, IDENTITIES + 1), number % 4)


def observe(library: Library) -> Any:
    """Return the photos and people of a library as `Model.holds` does; descriptors are verified."""
    photos = sorted(_photos_in(library))
    people = {}
    for person in library.people:
        verdicts = {_face_called(v.content, v.box.x0): v.says for v in library.people.verdicts(person)}
        examples = sorted(_called(example) for example in library.people.examples(person))
        people[person.name] = (examples, dict(sorted(verdicts.items())), sorted(person.aliases), person.note)
    return photos, people


def _photos_in(library: Library) -> Iterator[str]:
    for photo in library.catalog.all_photos():
        name, shown = photo.path.name, [round(face.box.x0 / 100) for face in photo.faces]
        assert shown == people_in(name), f"{name} shows {shown}"
        yield name


def _called(example: Example) -> str:
    if example.content is None or example.box is None:
        return str(example.source)
    return _face_called(example.content, example.box.x0)


def _face_called(content: bytes, x0: float) -> str:
    return f"{_NAME_BY_CONTENT[content]} {round(x0 / 100)}"


# -- changes in the model ----------------------------------------------------------------------------


def apply(model: Model, change: Change) -> Model:
    """Return the state after a change; `NotPossibleError` where the library has to refuse it."""
    kind, *more = change
    after = copy.deepcopy(model)
    if kind == "store":
        after.photos.update(more[0])
    elif kind == "forget":
        _forget(after, more[0])
    elif kind == "undo":
        _undo(after)
    elif kind == "redo":
        _redo(after)
    elif kind == "erase":
        _require(more[0] in after.people)
        del after.people[more[0]]
        after.undoable.append(FINAL)
        after.redoable = None
        after.dropped, after.mentioned = after.dropped | after.mentioned, set()
        _mention(after)
    else:
        _EDITS[kind](after.people, *more)
        _mention(after)
        if after.people != model.people:  # what changes nothing is not in the journal
            after.undoable.append(copy.deepcopy(model.people))
            after.redoable = None
    return after


def _require(condition: bool) -> None:
    if not condition:
        raise NotPossibleError


def _mention(model: Model) -> None:
    for person in model.people.values():
        model.mentioned.update(face for face in [*person.examples, *person.verdicts] if ".jpg" in face)


def _forget(model: Model, photo: str) -> None:
    faces = {f"{photo} {person}" for person in people_in(photo)}
    _require(photo in model.photos)
    model.photos.discard(photo)
    if faces & model.mentioned:
        model.undoable.append(FINAL)
    elif faces & model.dropped:
        model.undoable.append(UNSURE)
    else:
        return
    model.redoable = None
    for person in model.people.values():
        person.examples = [face for face in person.examples if face not in faces]
        person.verdicts = {face: says for face, says in person.verdicts.items() if face not in faces}
    model.mentioned -= faces
    model.dropped -= faces


def _undo(model: Model) -> None:
    before = model.undoable.pop() if model.undoable else FINAL
    if isinstance(before, str):
        raise NotPossibleError
    model.redoable, model.people = model.people, before


def _redo(model: Model) -> None:
    if model.redoable is None:
        raise NotPossibleError
    model.undoable.append(model.people)
    model.people, model.redoable = model.redoable, None


def _taken(people: People, name: str, but: str | None = None) -> bool:
    others = {alias for p in people.values() for alias in p.aliases}
    return name in others or (name in people and name != but)


def _add(people: People, name: str, face: str) -> None:
    known = next((p for other, p in people.items() if name == other or name in p.aliases), None)
    person = people.setdefault(name, Someone()) if known is None else known
    if face not in person.examples:
        person.examples.append(face)


def _rename(people: People, name: str, new: str) -> None:
    _require(name in people)
    if new in people[name].aliases:
        people[name].aliases.remove(new)
    _require(not _taken(people, new, but=name))
    people[new] = people.pop(name)


def _set_aliases(people: People, name: str, aliases: list[str]) -> None:
    _require(name in people)
    others = {other: p for other, p in people.items() if other != name}
    wanted = [alias for alias in aliases if alias != name]
    _require(not any(_taken(others, alias) for alias in wanted))
    people[name].aliases = wanted


def _set_note(people: People, name: str, note: str) -> None:
    _require(name in people)
    people[name].note = note


def _merge(people: People, into: str, other: str) -> None:
    _require(into in people and other in people and into != other)
    gone = people.pop(other)
    person = people[into]
    person.examples += [face for face in gone.examples if face not in person.examples]
    for face, says in gone.verdicts.items():
        if says == "yes" or face not in person.verdicts:
            person.verdicts[face] = says
    person.aliases += gone.aliases
    person.note = "\n".join(filter(None, [person.note, gone.note]))


def _split(people: People, name: str, faces: list[str], new: str) -> None:
    _require(name in people and bool(faces) and set(faces) <= set(people[name].examples))
    _require(len(faces) < len(people[name].examples) and not _taken(people, new))
    people[new] = Someone()
    _move(people, name, faces, new)


def _move(people: People, name: str, faces: list[str], to: str) -> None:
    _require(name in people and to in people and name != to)
    old, new = people[name], people[to]
    _require(bool(faces) and set(faces) <= set(old.examples))
    for face in faces:
        old.examples.remove(face)
        if face not in new.examples:
            new.examples.append(face)
        if old.verdicts.get(face) == "yes":
            new.verdicts[face] = old.verdicts.pop(face)


def _remove_examples(people: People, name: str, faces: list[str]) -> None:
    _require(name in people and bool(faces) and set(faces) <= set(people[name].examples))
    people[name].examples = [face for face in people[name].examples if face not in faces]


def _remove(people: People, name: str) -> None:
    _require(name in people)
    del people[name]


def _confirm(people: People, name: str, face: str) -> None:
    _require(name in people)
    for other, person in people.items():
        if other != name:
            person.examples = [e for e in person.examples if e != face]
            if person.verdicts.get(face) == "yes":
                del person.verdicts[face]
    people[name].verdicts[face] = "yes"
    _add(people, name, face)


def _reject(people: People, name: str, face: str) -> None:
    _require(name in people)
    people[name].verdicts[face] = "no"
    people[name].examples = [e for e in people[name].examples if e != face]


_EDITS: dict[str, Any] = {
    "add": _add,
    "rename": _rename,
    "aliases": _set_aliases,
    "note": _set_note,
    "merge": _merge,
    "split": _split,
    "move": _move,
    "remove examples": _remove_examples,
    "remove": _remove,
    "confirm": _confirm,
    "reject": _reject,
}

# -- random changes ----------------------------------------------------------------------------------


def propose(model: Model, chance: random.Random) -> Change:
    """Return a random change, most of which are possible in this state."""
    people = sorted(model.people)
    kind = chance.choices(
        ["store", "forget", "undo", "redo", "erase", *_EDITS],
        [8, 4, 6, 2, 1, 5, 2, 2, 1, 2, 2, 2, 2, 2, 6, 4],
    )[0]
    if kind in ("undo", "redo") and model.undoable[-1:] != [UNSURE]:
        return (kind,)
    if kind == "forget" and model.photos:
        return kind, chance.choice(sorted(model.photos))
    if kind in ("store", "undo", "redo"):
        return "store", tuple(f"{number}.jpg" for number in chance.sample(range(PHOTOS), chance.randint(1, 3)))
    if kind == "add" or not people:
        return "add", chance.choice(NAMES), f"portrait {chance.randint(1, IDENTITIES)} {chance.randrange(30)}"
    return _propose_edit(model, kind, chance.choice(people), chance)


def _propose_edit(model: Model, kind: str, name: str, chance: random.Random) -> Change:
    examples = model.people[name].examples
    some = chance.sample(examples, chance.randint(1, len(examples))) if examples else []
    other = chance.choice([*NAMES, *sorted(model.people)])
    if kind in ("rename", "merge"):
        return kind, name, other
    if kind == "aliases":
        return kind, name, [f"{other}y"] if chance.random() < 0.7 else []
    if kind == "note":
        return kind, name, chance.choice(["", "a friend", "from school"])
    if kind in ("split", "move"):
        return kind, name, some, other
    if kind == "remove examples":
        return kind, name, some
    if kind in ("confirm", "reject"):
        faces = [f"{photo} {person}" for photo in sorted(model.photos) for person in people_in(photo)]
        return (kind, name, chance.choice(faces)) if faces else ("remove", name)
    return ("erase" if kind == "erase" else "remove"), name


# -- changes of the library --------------------------------------------------------------------------


def perform(library: Library, change: Change) -> None:
    """Make a change; `InvalidInputError` where it is refused."""
    kind, *more = change
    people = library.people
    if kind == "store":
        store(library, {photo: people_in(photo) for photo in more[0]})
    elif kind == "forget":
        library.forget([f"{FOLDER}{more[0]}"])
    elif kind == "undo":
        people.undo()
    elif kind == "redo":
        latest = people.history(1)
        if not latest or latest[0].kind != "undo":
            raise InvalidInputError("the latest change is no undo")
        people.undo(latest[0].id)
    elif kind == "add":
        _, person, view = more[1].split()
        people.add(more[0], [Example(face_of(int(person), int(view)), more[1])])
    elif kind == "aliases":
        people.edit(more[0], aliases=more[1])
    elif kind == "note":
        people.edit(more[0], note=more[1])
    elif kind == "erase":
        people.remove(more[0], for_good=True)
    elif kind == "remove":
        people.remove(more[0])
    elif kind == "rename":
        people.rename(*more)
    elif kind == "merge":
        people.merge(more[0], [more[1]])
    elif kind in ("confirm", "reject"):
        judge = people.confirm if kind == "confirm" else people.refuse
        judge(more[0], *_place_of(library, more[1]))
    else:
        numbers = [e.number for e in people.examples(more[0]) if e.number and _called(e) in more[1]]
        if kind == "split":
            people.split(more[0], numbers, more[2])
        elif kind == "move":
            people.move(more[0], numbers, more[2])
        else:
            people.remove_examples(more[0], numbers)


def _place_of(library: Library, face: str) -> tuple[str, int]:
    """Return the id of a face's photo and its number there."""
    photo, person = face.split()
    for stored in library.catalog.all_photos():
        if stored.path.name == photo:
            return stored.id, people_in(photo).index(int(person))
    raise InvalidInputError(f"no photo {photo}")
