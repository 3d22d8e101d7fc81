"""Identify faces: the saved person a face belongs to, if any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from setnet.library.library import Library


class Identity(NamedTuple):
    """The saved person most similar to a face; the name is empty when nobody reaches the match threshold."""

    name: str
    similarity: float

    def to_dict(self) -> dict[str, Any]:
        """Return the identity as values that JSON can hold."""
        return {
            "person": self.name or None,
            "similarity": round(self.similarity, 4) if self.name else None,
        }


@dataclass(frozen=True, slots=True, eq=False)
class NamedPeople:
    """The saved people as one unit vector each, with the match threshold."""

    names: tuple[str, ...]
    vectors: NDArray[np.float32]
    threshold: float

    @classmethod
    def nobody(cls) -> NamedPeople:
        """Return an empty collection, which identifies nobody."""
        return cls((), np.zeros((0, 0), np.float32), 1.0)

    @classmethod
    def of(cls, library: Library) -> NamedPeople:
        """Return the saved people of a library."""
        names = tuple(person.name for person in library.people if person.examples)
        if not names:
            return cls.nobody()
        means = np.stack([library.people.descriptors(name).mean(axis=0) for name in names])
        vectors = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        return cls(names, vectors, library.set_index.logistic.threshold)

    def identify(self, descriptor: NDArray[np.float32]) -> Identity:
        """Return the person most similar to a face."""
        if not self.names:
            return Identity("", 0.0)
        similarities = self.vectors @ descriptor
        best = int(similarities.argmax())
        similarity = float(similarities[best])
        return Identity(self.names[best] if similarity >= self.threshold else "", similarity)
