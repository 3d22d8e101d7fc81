"""Whether example faces look like one person, and whether two are the very same face."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from setnet.heads import Logistic
from setnet.library.face_references import FaceReference
from setnet.library.person import Example

# Faces are told apart below this probability of a match. Chosen on the people of LFW's training half:
# `python -m studies.mixed_examples` has the figures.
_MIN_PROBABILITY = 0.2
_SAME_DESCRIPTOR = 1 - 1e-5  # similarity: the same numbers, but for how they were rounded


class KnownFaces:
    """Faces that are there already: `example in known` is whether one of them is the very same face.

    That is one at the same place of the same photo, or one with the same descriptor.
    """

    def __init__(self, examples: Iterable[Example]) -> None:
        self._references: list[FaceReference] = []
        self._rows: list[NDArray[np.float64]] = []
        for example in examples:
            self.add(example)

    def add(self, example: Example) -> None:
        """Count a face among those that are there."""
        reference = reference_in(example)
        if reference is not None:
            self._references.append(reference)
        self._rows.append(_unit_rows(example.descriptor[None])[0])

    def __contains__(self, example: Example) -> bool:
        reference = reference_in(example)
        if reference is not None and any(reference.is_same(other) for other in self._references):
            return True
        if not self._rows:
            return False
        similarities = np.stack(self._rows) @ _unit_rows(example.descriptor[None])[0]
        return bool(similarities.max() >= _SAME_DESCRIPTOR)


def reference_in(example: Example) -> FaceReference | None:
    """Return what refers to the face of an example; None where its photo's content is not known."""
    if example.content is None or example.box is None:
        return None
    return FaceReference(example.content, example.box)


def outsiders(descriptors: NDArray[np.float32], logistic: Logistic, known: int = 0) -> list[int]:
    """Return which faces do not look like the person that the others show.

    Faces are joined to groups by average linkage, as long as the mean similarity between two groups is more
    than that of strangers. The person is the group with most of the first `known` faces, which are theirs
    already; else the largest. Of equals the one with the earliest face.
    """
    groups = _connected_rows(_unit_rows(descriptors), _stranger_similarity(logistic))
    person = max(groups, key=lambda group: (sum(face < known for face in group), len(group), -min(group)))
    return sorted(set(range(len(descriptors))) - set(person))


def count_unlike(known: Sequence[Example], more: Sequence[Example], logistic: Logistic) -> int:
    """Return how many of `more` faces do not look like the person whose examples are `known`."""
    if not known or not more:
        return 0
    faces = np.stack([example.descriptor for example in (*known, *more)])
    return sum(face >= len(known) for face in outsiders(faces, logistic, known=len(known)))


def odd_examples(examples: Sequence[Example], logistic: Logistic) -> list[Example]:
    """Return the examples that do not look like the person that the others show."""
    if len(examples) < 2:
        return []
    odd = outsiders(np.stack([example.descriptor for example in examples]), logistic)
    return [examples[face] for face in odd]


def mixed_warning(
    name: str, before: Sequence[Example], examples: Sequence[Example], logistic: Logistic
) -> list[str]:
    """Return a remark when example faces do not all look like one person, and did not so `before`."""
    odd, known = ([e.number for e in odd_examples(some, logistic)] for some in (examples, before))
    if not odd or odd == known:
        return []
    numbers = ", ".join(map(str, odd))
    who = f"{len(odd)} of these {len(examples)}" if len(examples) > 2 else "these 2"
    return [
        f"{who} do not look like the same person: look at example {numbers} of {name}, and remove, move or "
        "split off what is not theirs"
    ]


def _stranger_similarity(logistic: Logistic) -> float:
    return float((np.log(_MIN_PROBABILITY / (1 - _MIN_PROBABILITY)) - logistic.b) / logistic.w)


def _unit_rows(descriptors: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = np.asarray(descriptors, np.float64)
    units: NDArray[np.float64] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return units


def _connected_rows(rows: NDArray[np.float64], min_similarity: float) -> list[list[int]]:
    """Join groups by average linkage while the mean similarity of two is at least `min_similarity`.

    A chain of nearest neighbours finds two groups that are nearest to each other; these are joined in any
    order of joining, so the whole takes quadratic time.
    """
    sums, counts = rows @ rows.T, np.ones(len(rows))
    np.fill_diagonal(sums, -np.inf)
    groups, done, chain = {face: [face] for face in range(len(rows))}, list[list[int]](), list[int]()
    while groups:
        chain = chain or [next(iter(groups))]
        last = chain[-1]
        means = sums[last] / (counts * counts[last])
        best = int(means.argmax())
        if len(chain) > 1 and means[chain[-2]] >= means[best]:
            best = chain[-2]
        if means[best] < min_similarity:  # it has nobody, and what others join to is no nearer
            done.append(groups.pop(chain.pop()))
            sums[last] = sums[:, last] = -np.inf
        elif len(chain) > 1 and best == chain[-2]:
            del chain[-2:]
            groups[best] += groups.pop(last)
            sums[best] += sums[last]
            sums[:, best] = sums[best]
            counts[best] += counts[last]
            sums[last] = sums[:, last] = sums[best, best] = -np.inf
        else:
            chain.append(best)
    return done
