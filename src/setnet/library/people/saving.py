"""Saves example faces under a name, and asks before they are mixed with another person's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from setnet.errors import InvalidInputError, TakenError, one_of
from setnet.heads import Logistic
from setnet.library.people.example import Example
from setnet.library.people.likeness import mixed_warning, outsiders
from setnet.library.people.names import checked_name
from setnet.library.people.people import People
from setnet.library.people.person import Person

IF_EXISTS = ("ask", "add", "refuse")


def save(
    people: People, name: str, examples: Sequence[Example], logistic: Logistic, if_exists: str = "ask"
) -> tuple[Person, list[str]]:
    """Keep example faces of a person, new or known; return the person, and remarks for the user.

    Parameters
    ----------
    if_exists
        What to do when somebody is called so already. `ask` adds the faces when the name is spelt as it is
        saved and they look like that person, and raises `TakenError` otherwise; `add` adds them in any case,
        `refuse` in none.
    """
    refuse_taken(people, name, examples, logistic, if_exists)
    known = people.get(name) if name in people else None
    before = [] if known is None else people.examples(known)
    saved = people.add(name, examples)
    notes = []
    again = len(examples) - (saved.examples - len(before))
    if again > 0:
        notes.append(f"{_faces(again)} {saved.name} had already: the same face counts once")
    return saved, notes + mixed_warning(saved.name, before, people.examples(saved), logistic)


def refuse_taken(
    people: People, name: str, examples: Sequence[Example], logistic: Logistic, if_exists: str
) -> None:
    """Raise when somebody is called so and it is not clear that they are meant; see `save`."""
    if if_exists not in IF_EXISTS:
        raise one_of("if_exists", if_exists, IF_EXISTS)
    if if_exists == "add" or name not in people:
        return
    known = people.get(name)
    remedy = f"add to {known.name} with --to-existing (if_exists 'add'), or choose another name"
    who = f"{known.name!r} is saved already, with {_faces(known.examples)}"
    if if_exists == "refuse":
        raise TakenError(f"{who}: {remedy}", known.to_dict())
    if name != known.id and checked_name(name) not in (known.name, *known.aliases):
        raise TakenError(f"{who}, and {name!r} is spelt differently: {remedy}", known.to_dict())
    there = people.examples(known)
    if not there or not examples:
        return
    both = [*there, *examples]
    if len({example.descriptor.shape for example in both}) > 1:
        raise InvalidInputError(f"descriptors of different lengths for {name!r}")
    odd = outsiders(np.stack([e.descriptor for e in both]), logistic, known=len(there))
    unlike = sum(face >= len(there) for face in odd)
    if unlike:
        these = f"{unlike} of these {_faces(len(examples))}" if len(examples) > 1 else "this face"
        verb = "do" if unlike > 1 else "does"
        raise TakenError(f"{who}, and {these} {verb} not look like them: {remedy}", known.to_dict())


def _faces(number: int) -> str:
    return f"{number} example face{'' if number == 1 else 's'}"
