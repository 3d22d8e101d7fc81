"""Trials of recognition: people with labelled faces, some of which are examples and the others looked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.library.recognition.person_vector import person_vector

Floats = NDArray[np.float32]
_MOST_GENUINE = 20  # faces of one person that a trial looks for


@dataclass(frozen=True, eq=False)
class LabelledFaces:
    """Descriptors of length 1 and whose each is.

    Attributes
    ----------
    quality
        (n, 6) numbers of `setnet.faces.Quality`, NaN where they are not known.
    shown
        (n, dim) descriptors of other pictures of the same faces, from which examples are taken.
    """

    descriptors: Floats
    owner: NDArray[np.int64]
    quality: Floats | None = None
    shown: Floats | None = None

    def people(self, least: int = 1) -> list[NDArray[np.int64]]:
        """Return the rows of each person with `least` faces or more."""
        order = np.argsort(self.owner, kind="stable")
        cuts = np.flatnonzero(np.diff(self.owner[order])) + 1
        return [rows for rows in np.split(order, cuts) if len(rows) >= least]


@dataclass(frozen=True, eq=False)
class Trial:
    """One person, known by some examples, compared with faces.

    Attributes
    ----------
    person
        The owner's number.
    vector
        What faces were compared with.
    genuine, genuine_rows
        Similarities of the person's other faces, and their rows.
    strangers
        Similarities of everybody else's faces.
    """

    person: int
    examples: int
    vector: Floats
    genuine: Floats
    genuine_rows: NDArray[np.int64]
    strangers: Floats


def trials(
    faces: LabelledFaces,
    examples: int,
    most: int,
    rng: np.random.Generator,
    left: int = 1,
) -> Iterator[Trial]:
    """Yield about `most` trials, each person once in turn and again while there is room.

    Taken are people with so many faces as examples and `left` more to look for.
    """
    people = faces.people(examples + left)
    if not people:
        return
    shown = faces.descriptors if faces.shown is None else faces.shown
    for _ in range(max(1, most // len(people))):
        for rows in people:
            mixed = rng.permutation(rows)
            vector = person_vector(shown[mixed[:examples]])
            similarity = faces.descriptors @ vector
            person = int(faces.owner[rows[0]])
            wanted = mixed[examples : examples + _MOST_GENUINE]
            others = similarity[faces.owner != person]
            yield Trial(person, examples, vector, similarity[wanted], wanted, others)
