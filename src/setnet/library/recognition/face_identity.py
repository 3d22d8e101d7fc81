"""Identify faces: the saved person a face belongs to, if any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.library.person import Person
from setnet.library.recognition.recogniser import Recogniser
from setnet.library.search.query_person import QueryPerson

if TYPE_CHECKING:
    from setnet.library.library import Library


class Identity(NamedTuple):
    """The saved person a face is recognised as; the name is empty when it is nobody's."""

    name: str
    similarity: float
    probability: float = 0.0
    sure: bool = False

    @property
    def label(self) -> str:
        """The person's name, with a question mark when it is not sure; empty for nobody."""
        return self.name if self.sure or not self.name else f"{self.name}?"

    def to_dict(self) -> dict[str, Any]:
        """Return the identity as values that JSON can hold."""
        return {
            "person": self.name or None,
            "similarity": round(self.similarity, 4) if self.name else None,
            "probability": round(self.probability, 6) if self.name else None,
            "sure": self.sure if self.name else None,
        }


@dataclass(frozen=True, slots=True, eq=False)
class NamedPeople:
    """The saved people, each with what recognises them among the faces of the library."""

    people: tuple[QueryPerson, ...]
    recognisers: tuple[Recogniser, ...]
    vectors: NDArray[np.float32]
    thresholds: NDArray[np.float64]

    @classmethod
    def nobody(cls) -> NamedPeople:
        """Return an empty collection, which identifies nobody."""
        return cls((), (), np.zeros((0, 0), np.float32), np.zeros(0))

    @classmethod
    def of(cls, library: Library, some: Iterable[Person] | None = None) -> NamedPeople:
        """Return the saved people of a library, or some of them."""
        chosen = library.people if some is None else some
        people = tuple(library.person(person.name) for person in chosen if person.examples)
        if not people:
            return cls.nobody()
        recognisers = tuple(library.matching.recogniser(person) for person in people)
        vectors = np.stack([recogniser.vector for recogniser in recognisers])
        return cls(people, recognisers, vectors, np.array([r.maybe for r in recognisers]))

    @property
    def names(self) -> tuple[str, ...]:
        """Who can be identified."""
        return tuple(person.name for person in self.people)

    def identify(
        self,
        descriptor: NDArray[np.float32],
        quality: Mapping[str, float] | None = None,
        face: tuple[str, int] | None = None,
    ) -> Identity:
        """Return whose face this is: the person whose threshold it exceeds by most.

        `face` is the photo's id and the number of the face in it, for what the user confirmed or refused.
        """
        if not self.people:
            return Identity("", 0.0)
        similarities = self.vectors @ descriptor
        margins = similarities - self.thresholds
        for number, person in enumerate(self.people) if face is not None else ():
            if face in person.confirmed:
                return Identity(person.name, float(similarities[number]), 1.0, True)
            if face in person.refused:
                margins[number] = -np.inf
        best = int(margins.argmax())
        similarity, recogniser = float(similarities[best]), self.recognisers[best]
        if margins[best] < 0:
            return Identity("", similarity)
        probability = recogniser.probability(similarity, quality)
        return Identity(self.people[best].name, similarity, probability, similarity >= recogniser.sure)
