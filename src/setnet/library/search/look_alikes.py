"""Warn of query people who are very probably one person."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from setnet.library.search.query_person import QueryPerson
from setnet.sets import Logistic

_SURE = 0.9  # more than a match: a remark that is often wrong is soon not read any more


def look_alikes(people: Sequence[QueryPerson], logistic: Logistic) -> list[str]:
    """Return a warning for each pair of query people who are very probably one person."""
    centres = [_centre(person) for person in people]
    warnings = []
    for a in range(len(people)):
        for b in range(a + 1, len(people)):
            similarity = float(centres[a] @ centres[b])
            if float(logistic.probability(similarity)) >= _SURE:
                warnings.append(
                    f"{people[a].name} and {people[b].name} look like one and the same person "
                    f"(similarity {similarity:.2f}): one face can only count for one of them"
                )
    return warnings


def _centre(person: QueryPerson) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = person.descriptors.mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)
