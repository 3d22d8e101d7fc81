"""A library in plain Python: what its photos and people are after any changes, and what a search finds.

Photo ``a/7.jpg`` always shows the same people at the same time: a library of invented photos needs no more
than its name. A face is called ``a/7.jpg 3`` after its photo and whom it shows, a portrait ``portrait 3 12``
after whom it shows and the view.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library import Conditions, Example, Library, LibraryPhoto
from tests.support.invented_photos import content_of, face_of, store

__all__ = [
    "Change",
    "Model",
    "NotPossibleError",
    "apply",
    "compare_search",
    "observe",
    "people_in",
    "perform",
    "propose",
    "traces",
]

Change = tuple[Any, ...]  # what to do, and with what
NAMES = ("Anna", "Ben", "Carl", "Dora", "Emil", "Fay")
IDENTITIES = 5
PHOTOS = 14
FINAL, UNSURE = "final", "unsure"
FOLDER = "/invented/"
DAY = 86400
NAMES_OF_PHOTOS = tuple(f"{'ab'[number % 2]}/{number}.jpg" for number in range(PHOTOS))
_NAME_BY_CONTENT = {content_of(name): name for name in NAMES_OF_PHOTOS}


@dataclass
class Someone:
    """A saved person: example faces, what was said of faces, photos with a tag, other names and a note."""

    examples: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)
    note: str = ""
    is_merged: bool = False
    tags: list[str] = field(default_factory=list)


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
            name: (
                sorted(p.examples),
                dict(sorted(p.labels.items())),
                sorted(p.aliases),
                p.note,
                sorted(p.tags),
            )
            for name, p in self.people.items()
        }
        return sorted(self.photos), people

    def copied(self) -> Model:
        """Return a copy whose people can be changed; those of the journal never are."""
        people = {name: _copied(p) for name, p in self.people.items()}
        sets = set(self.photos), people, list(self.undoable), self.redoable
        return Model(*sets, set(self.mentioned), set(self.dropped))


def _copied(p: Someone) -> Someone:
    return Someone(list(p.examples), dict(p.labels), list(p.aliases), p.note, p.is_merged, list(p.tags))


class NotPossibleError(Exception):
    """A change that the library has to refuse."""


def number_of(photo: str) -> int:
    """Return the number of a photo; it was taken on that day."""
    return int(Path(photo).stem)


def people_in(photo: str) -> list[int]:
    """Return who is in a photo: nobody to three people."""
    number = number_of(photo)
    return random.Random(number).sample(range(1, IDENTITIES + 1), number % 4)


def observe(library: Library) -> Any:
    """Return the photos and people of a library as `Model.holds` does; descriptors are verified."""
    photos = sorted(_photos_in(library))
    tags: dict[str, list[str]] = {}
    for photo in library.photos.all_photos():
        for tag in library.people.tags(photo.id):
            tags.setdefault(tag.person, []).append(_name_of(photo))
    people = {}
    for person in library.people:
        labels = {
            _face_called(v.content, v.box.x0): "yes" if v.is_match else "no"
            for v in library.people.labels(person)
        }
        examples = sorted(_called(example) for example in library.people.examples(person))
        said = dict(sorted(labels.items()))
        people[person.name] = (
            examples,
            said,
            sorted(person.aliases),
            person.note,
            sorted(tags.get(person.name, [])),
        )
    return photos, people


def _photos_in(library: Library) -> Iterator[str]:
    for photo in library.photos.all_photos():
        name, shown = _name_of(photo), [round(face.box.x0 / 100) for face in photo.faces]
        assert shown == people_in(name), f"{name} shows {shown}"
        yield name


def _name_of(photo: LibraryPhoto) -> str:
    return str(photo.path).removeprefix(FOLDER)


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
    after = model.copied()
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
            after.undoable.append(model.people)
            after.redoable = None
    return after


def _require(condition: bool) -> None:
    if not condition:
        raise NotPossibleError


def _mention(model: Model) -> None:
    for person in model.people.values():
        model.mentioned.update(face for face in [*person.examples, *person.labels] if ".jpg" in face)
        model.mentioned.update(f"{photo} tag" for photo in person.tags)


def _forget(model: Model, photo: str) -> None:
    faces = {f"{photo} {person}" for person in (*people_in(photo), "tag")}
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
        person.labels = {face: says for face, says in person.labels.items() if face not in faces}
        person.tags = [tagged for tagged in person.tags if tagged != photo]
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
    for face, says in gone.labels.items():
        if says == "yes" or face not in person.labels:
            person.labels[face] = says
    person.labels = {f: s for f, s in person.labels.items() if s == "yes" or f not in person.examples}
    person.tags += [photo for photo in gone.tags if photo not in person.tags]
    person.is_merged = True
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
        if old.labels.get(face) == "yes":
            new.labels[face] = old.labels.pop(face)


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
            if person.labels.get(face) == "yes":
                del person.labels[face]
    people[name].labels[face] = "yes"
    _add(people, name, face)


def _reject(people: People, name: str, face: str) -> None:
    _require(name in people)
    people[name].labels[face] = "no"
    people[name].examples = [e for e in people[name].examples if e != face]


def _tag(people: People, name: str, photo: str, _: str) -> None:
    _require(name in people and photo not in people[name].tags)
    people[name].tags.append(photo)


def _untag(people: People, name: str, photo: str) -> None:
    _require(name in people and photo in people[name].tags)
    people[name].tags.remove(photo)


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
    "tag": _tag,
    "untag": _untag,
}

# -- random changes ----------------------------------------------------------------------------------


def propose(model: Model, chance: random.Random) -> Change:
    """Return a random change, most of which are possible in this state."""
    people = sorted(model.people)
    kind = chance.choices(
        ["store", "forget", "undo", "redo", "erase", *_EDITS],
        [8, 4, 6, 2, 1, 5, 2, 2, 1, 2, 2, 2, 2, 2, 6, 4, 5, 1],
    )[0]
    if kind in ("undo", "redo") and model.undoable[-1:] != [UNSURE]:
        return (kind,)
    if kind == "forget" and model.photos:
        return kind, chance.choice(sorted(model.photos))
    if kind in ("store", "undo", "redo"):
        return "store", tuple(chance.sample(NAMES_OF_PHOTOS, chance.randint(1, 3)))
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
    if kind in (
        "split",
        "move",
    ):  # what a split shares out by similarity, or by a merge, the model does not know
        labels = model.people[name].labels
        is_plain = not model.people[name].is_merged and all(
            says == "no" or face in examples for face, says in labels.items()
        )
        return kind if is_plain else "move", name, some, other
    if kind == "remove examples":
        return kind, name, some
    if kind in ("tag", "untag") and model.photos:
        photo = chance.choice(sorted(model.photos))
        return (kind, name, photo, chance.choice(["", "corner"])) if kind == "tag" else (kind, name, photo)
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
        times = {photo: float(DAY * number_of(photo)) for photo in more[0]}
        store(library, {photo: people_in(photo) for photo in more[0]}, times)
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
        people.merge(more[0], [more[1]], "merge")
    elif kind == "tag":
        people.tag(more[0], _id_of(library, more[1]), Box(1500, 1000, 1600, 1200) if more[2] else None)
    elif kind == "untag":
        people.untag(more[0], _id_of(library, more[1]))
    elif kind in ("confirm", "reject"):
        judge = people.confirm if kind == "confirm" else people.reject
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
    return _id_of(library, photo), people_in(photo).index(int(person))


def _id_of(library: Library, photo: str) -> str:
    for stored in library.photos.all_photos():
        if _name_of(stored) == photo:
            return stored.id
    raise InvalidInputError(f"no photo {photo}")


def traces(root: Path, photo: str) -> list[str]:
    """Return the files below a folder that hold the path of a photo or a descriptor of a face in it."""
    marks = [f"{FOLDER}{photo}".encode()]
    for person in people_in(photo):
        vector = face_of(person, zlib.crc32(photo.encode()))
        marks += [vector.tobytes(), vector.astype(np.float16).tobytes()]
    found = []
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        content = file.read_bytes()
        found += [str(file.relative_to(root))] if any(mark in content for mark in marks) else []
    return found


# -- searches ----------------------------------------------------------------------------------------


def compare_search(library: Library, model: Model, chance: random.Random) -> None:
    """Compare the answers to a random query, with and without each condition, with the model."""
    people = [name for name in sorted(model.people) if model.people[name].examples]
    if not people:
        return
    one, other = chance.choice(people), chance.choice(people)
    found = _found(library, [one])
    must, may = _expected(model, one)
    assert must <= found <= may, f"{one}: {sorted(found)}, not {sorted(must)} to {sorted(may)}"
    number = chance.randrange(PHOTOS)
    conditions: dict[str, tuple[Conditions, Callable[[str], bool]]] = {
        "folder": (Conditions(folder=f"{FOLDER}a"), lambda photo: photo.startswith("a/")),
        "faces": (Conditions(faces=(2, None)), lambda photo: len(people_in(photo)) >= 2),
        "after": (Conditions(after=_date(number)), lambda photo: number_of(photo) >= number),
        "before": (Conditions(before=_date(number)), lambda photo: number_of(photo) < number),
        "photo": (Conditions(kind="photo"), lambda photo: True),
        "video": (Conditions(kind="video"), lambda photo: False),
    }
    name, (condition, is_met) = chance.choice(list(conditions.items()))
    met = {photo for photo in found if is_met(photo)}
    assert _found(library, [one], conditions=condition) == met, f"{one}, {name} of {number}"
    with_others = {photo for name, p in model.people.items() if name != one for photo in p.tags}
    own = set(model.people[one].tags)
    alone = {photo for photo in found if len(people_in(photo)) == (0 if photo in own else 1)} - with_others
    theirs = {photo for photo in found if _may_be_only(photo, model.people[one])} - with_others
    found_alone = _found(library, [one], only=True)
    assert alone <= found_alone <= theirs, f"only {one}: {sorted(found_alone)}, not {sorted(alone)}"
    if one == other:
        return
    found_other, either = _found(library, [other]), _found(library, [one, other])
    is_clear = not _shown(model.people[one]) & _shown(model.people[other])  # else a face counts for either
    assert either <= found | found_other, f"{one} or {other}: {sorted(either)}"
    assert found <= either or not is_clear, f"{one}: {sorted(found)}, or {other}: {sorted(either)}"
    both = _found(library, [one, other], at_least=2)
    others = set(model.people[other].tags) & model.photos
    assert own & others <= both <= found & found_other, f"{one} and {other}: {sorted(both)}"
    assert _found(library, [one], without=[other]) <= found - others, f"{one} without {other}"


def _date(number: int) -> datetime:
    return datetime.fromtimestamp(DAY * number, UTC).replace(tzinfo=None)


def _found(library: Library, people: Sequence[str], **options: Any) -> set[str]:
    hits = library.search(people, k=PHOTOS + 1, sure=True, **options)
    names = [_name_of(hit.photo) for hit in hits]
    assert len(set(names)) == len(names), f"a photo twice: {names}"
    return set(names)


def _may_be_only(photo: str, person: Someone) -> bool:
    """Return whether each face of a photo may be taken for a person, whose examples may show several."""
    return _shown(person).issuperset(people_in(photo))


def _shown(person: Someone) -> set[int]:
    """Return who is shown by a person's examples and confirmed faces."""
    confirmed = [face for face, says in person.labels.items() if says == "yes"]
    return {int(face.split()[1]) for face in [*person.examples, *confirmed]}


def _expected(model: Model, name: str) -> tuple[set[str], set[str]]:
    """Return the photos that a search for a person has to find, and those that it may find.

    Of somebody whose examples show several people a search may find each of them. A face that was rejected
    makes others doubtful.
    """
    person = model.people[name]
    shown = {int(face.split()[1]) for face in person.examples}
    is_clear = len(shown) == 1 and "no" not in person.labels.values()
    judged = {face for p in model.people.values() for face in [*p.labels, *p.examples]}
    must = set(person.tags) & model.photos
    may = set(must)
    for photo in model.photos:
        for identity in people_in(photo):
            face = f"{photo} {identity}"
            says = person.labels.get(face)
            if says == "yes" or (is_clear and identity in shown and face not in judged):
                must.add(photo)
            if says == "yes" or (says is None and identity in shown):
                may.add(photo)
    return must, may
