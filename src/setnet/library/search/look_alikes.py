"""Warn of query people who are very probably one person."""

from __future__ import annotations

from collections.abc import Sequence

from setnet.library.recognition.recogniser import Recogniser
from setnet.library.search.query_person import QueryPerson


def look_alikes(people: Sequence[QueryPerson], recognisers: Sequence[Recogniser]) -> list[str]:
    """Return a warning for each pair of query people who are very probably one person."""
    warnings = []
    for a in range(len(people)):
        for b in range(a + 1, len(people)):
            similarity = float(recognisers[a].vector @ recognisers[b].vector)
            if similarity >= max(recognisers[a].sure, recognisers[b].sure):
                warnings.append(
                    f"{people[a].name} and {people[b].name} look like one and the same person "
                    f"(similarity {similarity:.2f}): one face can only count for one of them"
                )
    return warnings
