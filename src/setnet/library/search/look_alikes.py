"""Warn of query people who are very probably one person."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from setnet.library.recognition.recogniser import Recogniser
from setnet.library.search.query_person import QueryPerson


def look_alikes(people: Sequence[QueryPerson], recognisers: Sequence[Recogniser]) -> list[str]:
    """Return one warning of all query people who are very probably one person, if there are any."""
    groups: list[set[int]] = []
    for a, b in combinations(range(len(people)), 2):
        similarity = float(recognisers[a].vector @ recognisers[b].vector)
        if similarity >= max(recognisers[a].sure, recognisers[b].sure):
            joined = [group for group in groups if group & {a, b}]
            groups = [group for group in groups if group not in joined] + [{a, b}.union(*joined)]
    if not groups:
        return []
    alike = [_listed([people[number].name for number in sorted(group)]) for group in sorted(groups, key=min)]
    also = "".join(f", and so do {names}" for names in alike[1:])
    return [f"{alike[0]} look like one and the same person{also}: one face can only count for one of them"]


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
