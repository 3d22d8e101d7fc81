"""Which saved person a face is, if any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from setnet.library.library import Library

__all__ = ["NamedPeople"]


@dataclass(frozen=True, slots=True, eq=False)
class NamedPeople:
    """The saved people as one unit vector each, and the similarity from which a face is theirs."""

    names: tuple[str, ...]
    vectors: NDArray[np.float32]
    threshold: float

    @classmethod
    def nobody(cls) -> NamedPeople:
        """Return the people of a library that knows none."""
        return cls((), np.zeros((0, 0), np.float32), 1.0)

    @classmethod
    def of(cls, library: Library) -> NamedPeople:
        """Return the saved people of a library."""
        names = tuple(person.name for person in library.people)
        if not names:
            return cls.nobody()
        means = np.stack([library.people.descriptors(name).mean(axis=0) for name in names])
        vectors = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        return cls(names, vectors, library.set_index.logistic.threshold)

    def name_of(self, descriptor: NDArray[np.float32]) -> tuple[str, float]:
        """Return the most similar person and the similarity; an empty name when nobody is near."""
        if not self.names:
            return "", 0.0
        similarities = self.vectors @ descriptor
        best = int(similarities.argmax())
        similarity = float(similarities[best])
        return (self.names[best], similarity) if similarity >= self.threshold else ("", similarity)
