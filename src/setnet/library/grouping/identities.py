"""What is known about who is whom: by the groups there are, and by what users said."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.faces import Box
from setnet.library.grouping.library_faces import LibraryFaces
from setnet.library.people.example import descriptor_from
from setnet.library.store.face_references import FaceReference, resolve_all
from setnet.library.store.tables.group_tables import face_number

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Identities:
    """What is known about the faces of a library, one entry for each; 0 says nothing.

    Attributes
    ----------
    group
        The group a face is in.
    person
        Whose group that is.
    hidden
        Whether that group is hidden.
    label
        Whose face it is by what users said: it is an example of theirs, or was confirmed.
    refused_face, refused_person
        Faces, by row, and the people they are not.
    example_person, examples
        Examples of people that are not among the faces, such as portraits; (n, dim) at unit length.
    """

    group: Ints
    person: Ints
    hidden: NDArray[np.bool_]
    label: Ints
    refused_face: Ints
    refused_person: Ints
    example_person: Ints
    examples: NDArray[np.float32]

    @classmethod
    def read(cls, db: sqlite3.Connection, faces: LibraryFaces) -> Identities:
        """Return what a library's database says about its faces; for calls inside one transaction."""
        group = _members(db, faces)
        person, hidden = _of_groups(db, group)
        label = np.zeros(len(faces), np.int64)
        outside = _label_examples(db, faces, label)
        refused = _label_verdicts(db, faces, label)
        dim = faces.vectors.shape[1]
        vectors = [vector for _, vector in outside if vector.shape == (dim,) and vector.any()]
        owners = [who for who, vector in outside if vector.shape == (dim,) and vector.any()]
        return cls(
            group,
            person,
            hidden,
            label,
            np.array([row for row, _ in refused], np.int64),
            np.array([who for _, who in refused], np.int64),
            np.array(owners, np.int64),
            np.array([v / np.linalg.norm(v) for v in vectors], np.float32).reshape(-1, dim),
        )

    @property
    def fixed(self) -> Ints:
        """The group that each face stays in whatever it looks like; 0 where it may go elsewhere.

        These are the faces of named and hidden groups, but those that users said are somebody else's.
        """
        free = (self.label != 0) & (self.label != self.person)
        free[self.refused_face[self.person[self.refused_face] == self.refused_person]] = True
        return np.where(((self.person != 0) | self.hidden) & ~free, self.group, 0)


def _members(db: sqlite3.Connection, faces: LibraryFaces) -> Ints:
    found = np.array(db.execute("SELECT id, grp FROM group_members").fetchall(), np.int64).reshape(-1, 2)
    rows = faces.rows_of(found[:, 0])
    group = np.zeros(len(faces), np.int64)
    group[rows[rows >= 0]] = found[rows >= 0, 1]
    return group


def _of_groups(db: sqlite3.Connection, group: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    special = db.execute(
        "SELECT id, coalesce(person, 0), hidden FROM face_groups WHERE person IS NOT NULL OR hidden"
    ).fetchall()
    highest = max(int(group.max(initial=0)), *(row[0] for row in special), 0)
    people, hidden = np.zeros(highest + 1, np.int64), np.zeros(highest + 1, bool)
    for number, person, is_hidden in special:
        people[number], hidden[number] = person, bool(is_hidden)
    return people[group], hidden[group]


def _label_examples(
    db: sqlite3.Connection, faces: LibraryFaces, label: Ints
) -> list[tuple[int, NDArray[np.float32]]]:
    """Label the faces that are examples; return the people and descriptors of the other examples."""
    rows = db.execute(
        "SELECT person, descriptor, content, x0, y0, x1, y1 FROM examples ORDER BY id"
    ).fetchall()
    outside = []
    places = _places(db, faces, [(row[2], row[3:]) for row in rows])
    for (person, descriptor, *_), found in zip(rows, places, strict=True):
        label[found] = person
        if not len(found):
            outside.append((person, descriptor_from(descriptor)))
    return outside


def _label_verdicts(db: sqlite3.Connection, faces: LibraryFaces, label: Ints) -> list[tuple[int, int]]:
    """Label the faces that were confirmed; return faces that were refused, with the people they are not."""
    rows = db.execute("SELECT person, says, content, x0, y0, x1, y1 FROM verdicts ORDER BY id").fetchall()
    refused = []
    places = _places(db, faces, [(row[2], row[3:]) for row in rows])
    for (person, says, *_), found in zip(rows, places, strict=True):
        if says == "yes":
            label[found] = person
        else:
            refused += [(row, person) for row in found]
    return refused


def _places(
    db: sqlite3.Connection, faces: LibraryFaces, wanted: list[tuple[bytes | None, tuple[float, ...]]]
) -> list[list[int]]:
    """Return the rows of faces by the content of their photo and their box; all copies of a photo."""
    known = [n for n, (content, box) in enumerate(wanted) if content is not None and None not in box]
    references = [FaceReference(wanted[n][0] or b"", Box(*wanted[n][1])) for n in known]
    found: list[list[int]] = [[] for _ in wanted]
    for n, places in zip(known, resolve_all(db, references), strict=True):
        numbers = np.array([face_number(*place) for place in places], np.int64)
        rows = faces.rows_of(numbers)
        found[n] = rows[rows >= 0].tolist()
    return found
