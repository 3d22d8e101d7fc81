"""The faces of a library as the grouping takes them: who belongs together, and who is kept apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Apart
from setnet.library.grouping.faces_to_group import FacesToGroup, in_one_photo
from setnet.library.grouping.identities import Identities
from setnet.library.grouping.library_faces import LibraryFaces
from setnet.library.store.tables.group_tables import FACES

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Faces of a library, then examples of people, to be grouped; and which of them are new."""

    faces: FacesToGroup
    is_new: NDArray[np.bool_]


def units_of(faces: LibraryFaces, known: Identities, *, anew: bool) -> Units:
    """Return the faces with what is known of them; `anew` gives up all groups but named and hidden ones.

    A unit is a group, or all that is known of a person beside their groups: portraits, and faces that were
    confirmed and are in no group of theirs. Units of a person have one name; a hidden group has its own, so
    that it is never a part of another.
    """
    fixed, examples = known.fixed, len(known.examples)
    labelled = (fixed == 0) & (known.label != 0)
    kept = fixed if anew else np.where(fixed > 0, fixed, np.where(_is_loose(known), 0, known.group))
    key = np.concatenate([np.where(labelled, -known.label, kept), -known.example_person])
    values, unit = np.unique(key, return_inverse=True)
    unit = unit.astype(np.int64)
    persons = np.unique(np.concatenate([known.person, known.label, known.example_person]))
    names = _names(values, unit[: len(faces)], known, persons)
    is_new = np.concatenate([labelled | (kept == 0), np.ones(examples, bool)])
    photos = np.concatenate([faces.numbers // FACES, -1 - np.arange(examples)])
    return Units(
        FacesToGroup(
            np.concatenate([faces.vectors, known.examples]),
            np.concatenate([faces.weights, np.ones(examples)]),
            np.where(key == 0, -1, unit),
            names,
            _both(in_one_photo(photos), _refused(known, key, unit, names, persons)),
        ),
        is_new,
    )


def _names(values: Ints, unit: Ints, known: Identities, persons: Ints) -> NDArray[np.int32]:
    """Return the name of each unit: the place of its person among `persons`, or one of its own if hidden."""
    fixed, names = known.fixed, np.full(len(values), -1, np.int32)
    names[values < 0] = np.searchsorted(persons, -values[values < 0])
    named = np.flatnonzero((fixed > 0) & (known.person > 0))
    names[unit[named]] = np.searchsorted(persons, known.person[named])
    hidden = np.unique(unit[(fixed > 0) & known.hidden & (known.person == 0)])
    names[hidden] = len(persons) + np.arange(len(hidden))
    return names


def _is_loose(known: Identities) -> NDArray[np.bool_]:
    """Return which faces are in a named group and, by what users said, should not be."""
    return np.asarray(((known.person != 0) | known.hidden) & (known.fixed == 0))


def _refused(known: Identities, key: Ints, unit: Ints, names: NDArray[np.int32], persons: Ints) -> Apart:
    """Return refused faces, each with a face of every unit of the person that it is not."""
    units, first = np.unique(unit, return_index=True)
    has_name = (names[units] >= 0) & (key[first] != 0)
    units, first = units[has_name], first[has_name]
    one, other = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for face, person in zip(known.refused_face, known.refused_person, strict=True):
        at = np.searchsorted(persons, person)
        if at < len(persons) and persons[at] == person:
            theirs = first[(names[units] == at) & (unit[first] != unit[face])]
            one.append(np.full(len(theirs), face))
            other.append(theirs)
    pairs = np.concatenate(one), np.concatenate(other)
    return Apart(*pairs, np.full(len(pairs[0]), np.inf, np.float32))


def _both(some: Apart, more: Apart) -> Apart:
    return Apart(
        np.concatenate([some.one, more.one]),
        np.concatenate([some.other, more.other]),
        np.concatenate([some.weight, more.weight]),
    )
